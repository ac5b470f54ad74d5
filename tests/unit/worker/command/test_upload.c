/* A command that is passed on while it arrives: piece by piece, and what becomes of a broken one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "worker/client/pinned.h"

#define OK "+OK\r\n"
#define HEAD "*3\r\n$3\r\nSET\r\n$8\r\nitem:new\r\n$2000000\r\n"
#define OTHER_HEAD "*3\r\n$3\r\nSET\r\n$8\r\nitem:nox\r\n$2000000\r\n"
#define KNOWN_HEAD "*3\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n$2000000\r\n"

enum { BODY = 2000000, PIECE = 250000 };

static char *body; /* of 'v', with CR LF */

static struct upstream *own(struct bench *bench)
{
    return bench->client->pinned.own;
}

static bool uploads(struct bench *bench)
{
    return bench->client->pinned.states & PINNED_UPLOAD;
}

/* A piece goes as it comes, and nothing of it stays here. */
static void must_pass_on(struct bench *bench, const char *bytes, size_t length)
{
    type_bytes(bench->client, bytes, length);
    struct span out = buffer_span(&own(bench)->out);
    assert_int_equal(out.length, length);
    assert_memory_equal(out.at, bytes, length);
    buffer_clear(&own(bench)->out);
    assert_int_equal(buffer_length(&bench->client->in), 0);
}

static void pass_on_all_but(struct bench *bench, size_t rest)
{
    size_t at = 0;
    for (; at + PIECE < BODY + 2 - rest; at += PIECE)
        must_pass_on(bench, body + at, PIECE);
    must_pass_on(bench, body + at, BODY + 2 - rest - at);
}

/* So few that none is for keys that the filter knows. */
#define NO_ROOM_FOR_HELD "max_hints: 3\n"

static void a_large_write_goes_to_the_cache_as_it_comes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD);
    type(bench.client, KNOWN_HEAD);
    assert_true(uploads(&bench));
    must_send(own(&bench), KNOWN_HEAD);
    assert_true(upstream_is_waiting(own(&bench))); /* as long as the client takes */
    pass_on_all_but(&bench, 0);
    assert_false(uploads(&bench));
    assert_false(upstream_is_waiting(own(&bench)));
    cache_says(own(&bench), OK);
    must_reply(bench.client, OK);
    must_not_ask(bench.keeper);
    must_send(bench.shared, "");
    bench_finish(&bench);
}

/* SET may have GET at its end. */
static void what_may_tell_of_a_row_is_gathered_while_the_server_is_doubted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD);
    bench.shared->doubted = true;
    type(bench.client, KNOWN_HEAD);
    assert_false(uploads(&bench));
    assert_null(own(&bench));
    bench_finish(&bench);
    bench_init(&bench, NO_ROOM_FOR_HELD);
    bench.shared->doubted = true;
    type(bench.client, "*4\r\n$5\r\nSETEX\r\n$6\r\nitem:1\r\n$1\r\n9\r\n$2000000\r\n");
    assert_true(uploads(&bench));
    bench_finish(&bench);
}

/* The cache runs nothing before the last byte is there; a hint that came long before that could
 * have ended by then. */
static void the_write_is_admitted_just_before_its_last_bytes_go(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, HEAD);
    must_send(own(&bench), HEAD);
    pass_on_all_but(&bench, 1);
    assert_int_equal(overrides_count(&bench.serving->overrides), 0);
    must_pass_on(&bench, "\n", 1);
    assert_int_equal(overrides_count(&bench.serving->overrides), 1);
    must_not_ask(bench.keeper);
    cache_says(own(&bench), OK);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    bench_finish(&bench);
}

static void upload(struct bench *bench, const char *head, const char *answer)
{
    type(bench->client, head);
    must_send(own(bench), head);
    pass_on_all_but(bench, 0);
    cache_says(own(bench), answer);
}

/* Else one that is refused would give back what another write has taken. */
static void its_hint_is_in_its_clients_account(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "max_hints: 2\n");
    size_t *count = &bench.client->hints.count;
    upload(&bench, HEAD, OK);
    mailbox_return(&next_hint(bench.keeper, "item:new")->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    assert_int_equal(*count, 1);
    upload(&bench, OTHER_HEAD, "-OOM no\r\n"); /* which was one more than its client may have */
    must_reply(bench.client, "-OOM no\r\n");
    assert_int_equal(*count, 1);
    upload(&bench, OTHER_HEAD, OK);
    mailbox_return(&next_hint(bench.keeper, "item:nox")->message);
    hear_keeper(&bench);
    must_reply(bench.client, OK);
    assert_int_equal(*count, 2);
    bench_finish(&bench);
}

static void what_stands_behind_it_is_served_when_it_is_over(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD);
    type(bench.client, KNOWN_HEAD);
    must_send(own(&bench), KNOWN_HEAD);
    pass_on_all_but(&bench, 1);
    type(bench.client, "\n" PING);
    must_send(own(&bench), "\n" PING);
    assert_int_equal(own(&bench)->count, 2);
    cache_says(own(&bench), OK);
    cache_says(own(&bench), "+PONG\r\n");
    must_reply(bench.client, OK "+PONG\r\n");
    bench_finish(&bench);
}

static void a_command_that_the_guard_must_know_whole_is_gathered(void **state)
{
    static const char *const heads[] = {
        "*5\r\n$4\r\nMSET\r\n$6\r\nitem:1\r\n$1\r\nv\r\n$6\r\nitem:2\r\n$2000000\r\n",
        "*2\r\n$3\r\nGET\r\n$2000000\r\n", "*3\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n$2000000\r\n",
        "*3\r\n$3\r\nSET\r\n$2000000\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct bench bench;
        bench_init(&bench, "");
        type(bench.client, heads[i]);
        assert_null(own(&bench));
        assert_true(bench.client->need > UPLOAD_BYTES);
        assert_int_equal(buffer_length(&bench.client->in), strlen(heads[i]));
        must_send(bench.shared, "");
        bench_finish(&bench);
    }
}

#define GATHERED_HEAD "*5\r\n$4\r\nMSET\r\n$6\r\nitem:1\r\n$1\r\nv\r\n$6\r\nitem:2\r\n$2000000\r\n"

static void gather(struct bench *bench)
{
    type(bench->client, GATHERED_HEAD);
    type_bytes(bench->client, body, BODY);
}

/* Nobody else waits for it then, and nothing of it is copied. */
static void
what_was_gathered_goes_over_an_own_connection_in_the_memory_that_it_came_in(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD);
    gather(&bench);
    buffer_reserve(&bench.client->in, strlen("\r\n" PING)); /* so that it moves no more */
    const char *at = buffer_span(&bench.client->in).at;
    type(bench.client, "\r\n" PING);
    must_send(bench.shared, "");
    struct span out = buffer_span(&own(&bench)->out);
    assert_ptr_equal(out.at, at);
    assert_int_equal(out.length, strlen(GATHERED_HEAD) + BODY + 2);
    assert_memory_equal(out.at + out.length - 4, "vv\r\n", 4);
    buffer_clear(&own(&bench)->out);
    assert_int_equal(own(&bench)->count, 1);
    cache_says(own(&bench), OK);
    type(bench.client, "");
    must_send(own(&bench), PING);
    cache_says(own(&bench), "+PONG\r\n");
    must_reply(bench.client, OK "+PONG\r\n");
    bench_finish(&bench);
}

/* What the connection has to write first stays before it. */
static void what_was_gathered_is_copied_behind_what_waits_to_be_written(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD);
    assert_int_equal(pinned_begin(bench.client), 0);
    type(bench.client, PING);
    gather(&bench);
    type(bench.client, "\r\n");
    struct span out = buffer_span(&own(&bench)->out);
    assert_int_equal(out.length, strlen(PING) + strlen(GATHERED_HEAD) + BODY + 2);
    assert_memory_equal(out.at, PING "*5", strlen(PING "*5"));
    buffer_clear(&own(&bench)->out);
    bench_finish(&bench);
}

static void what_was_gathered_stays_on_the_shared_connection_when_own_ones_are_used_up(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, NO_ROOM_FOR_HELD "own_connections: 1\n");
    struct client *other = client_add(&bench.clients);
    assert_int_equal(pinned_begin(other), 0);
    other->pinned.states = PINNED_MULTI;
    gather(&bench);
    type(bench.client, "\r\n");
    assert_null(own(&bench));
    assert_int_equal(buffer_length(&bench.shared->out), strlen(GATHERED_HEAD) + BODY + 2);
    other->pinned.states = 0;
    bench_finish(&bench);
}

/* It would hold up all others there. */
static void without_a_connection_of_its_own_it_is_gathered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "own_connections: 1\n");
    struct client *other = client_add(&bench.clients);
    assert_int_equal(pinned_begin(other), 0);
    other->pinned.states = PINNED_MULTI;
    type(bench.client, KNOWN_HEAD);
    assert_null(own(&bench));
    must_reply(bench.client, "");
    must_send(bench.shared, "");
    other->pinned.states = 0;
    bench_finish(&bench);
}

static void a_broken_header_ends_the_client(void **state)
{
    static const char *const ends[] = {"x", "*1\r\n", "$-1\r\n", "$600000000\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct bench bench;
        bench_init(&bench, "");
        type(bench.client, "*4\r\n$6\r\nAPPEND\r\n$6\r\nitem:1\r\n$2000000\r\n");
        if (!uploads(&bench)) { /* the wrong number of words for that one */
            bench_finish(&bench);
            bench_init(&bench, "");
            type(bench.client, "*4\r\n$3\r\nSET\r\n$6\r\nitem:1\r\n$2000000\r\n");
        }
        assert_true(uploads(&bench));
        type_bytes(bench.client, body, BODY + 2);
        type(bench.client, ends[i]);
        assert_int_equal(bench.client->state, CLIENT_CLOSED);
        assert_int_equal(counter_read(&bench.serving->counters.protocol_errors), 1);
        must_not_ask(bench.keeper);
        bench_finish(&bench);
    }
}

static void an_aborted_one_is_not_noted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, HEAD);
    upload_abort(bench.client);
    upload_abort(bench.client); /* there is none any more */
    assert_false(uploads(&bench));
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* Its slot must not stay in the queue for ever, nor its bytes go to another connection. */
static void a_lost_connection_ends_the_client(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, HEAD);
    cache_is_lost(own(&bench));
    assert_int_equal(bench.client->state, CLIENT_LEAVING);
    upload_abort(bench.client); /* as connection.c does then */
    must_reply(bench.client, "-NESTGUARD cache down\r\n");
    assert_null(bench.client->replies.first);
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static int make_body(void **state)
{
    (void)state;
    body = xmalloc(BODY + 2);
    memset(body, 'v', BODY);
    memcpy(body + BODY, "\r\n", 2);
    return 0;
}

static int free_body(void **state)
{
    (void)state;
    free(body);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_write_goes_to_the_cache_as_it_comes),
        cmocka_unit_test(what_may_tell_of_a_row_is_gathered_while_the_server_is_doubted),
        cmocka_unit_test(the_write_is_admitted_just_before_its_last_bytes_go),
        cmocka_unit_test(its_hint_is_in_its_clients_account),
        cmocka_unit_test(what_stands_behind_it_is_served_when_it_is_over),
        cmocka_unit_test(a_command_that_the_guard_must_know_whole_is_gathered),
        cmocka_unit_test(
            what_was_gathered_goes_over_an_own_connection_in_the_memory_that_it_came_in),
        cmocka_unit_test(what_was_gathered_is_copied_behind_what_waits_to_be_written),
        cmocka_unit_test(
            what_was_gathered_stays_on_the_shared_connection_when_own_ones_are_used_up),
        cmocka_unit_test(without_a_connection_of_its_own_it_is_gathered),
        cmocka_unit_test(a_broken_header_ends_the_client),
        cmocka_unit_test(an_aborted_one_is_not_noted),
        cmocka_unit_test(a_lost_connection_ends_the_client),
    };
    return cmocka_run_group_tests(tests, make_body, free_body);
}
