/* WAIT, over connections of its own: what each primary is asked, for how long, and what is told of
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"
#include "fakes/clock.h"
#include "worker/client/pinned.h"

#define WAIT(replicas, size, ms) "*3\r\n$4\r\nWAIT\r\n" replicas "$" size "\r\n" ms "\r\n"
#define ONE "$1\r\n1\r\n"
#define TWO "$1\r\n2\r\n"
#define ALL "$7\r\n1000000\r\n"
#define INFO "*2\r\n$4\r\nINFO\r\n$11\r\nreplication\r\n"
#define MAY_IT WAIT("$1\r\n0\r\n", "1", "1") INFO
#define PAUSE(size, ms) WAIT(ALL, size, ms) INFO
#define DENIED "-NOPERM this user may not\r\n"

enum { BEGINNING = 1000 };

static struct upstream *typed(struct bench *bench, const char *command)
{
    now_ms = BEGINNING;
    bench_init(bench, "cache_timeout: 5s\n");
    type(bench->client, command);
    must_send(bench->shared, "");
    assert_ptr_not_equal(last_upstream, bench->shared);
    return last_upstream;
}

/* A primary that is at 700, and how far its two replicas are. */
static void say_standing(struct upstream *upstream, unsigned one, unsigned other)
{
    char text[400], reply[500];
    snprintf(text, sizeof text,
             "role:master\r\nslave0:ip=h,port=1,state=online,offset=%u,lag=0\r\n"
             "slave1:ip=h,port=2,state=online,offset=%u,lag=0\r\n"
             "master_replid:abc\r\nmaster_repl_offset:700\r\n",
             one, other);
    snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(text), text);
    cache_says(upstream, ":0\r\n");
    cache_says(upstream, reply);
}

static void it_ends_at_once_when_enough_have_it(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
    must_send(own, MAY_IT);
    say_standing(own, 699, 700);
    must_reply(bench.client, ":1\r\n");
    assert_false(bench.client->pinned.waiting);
    bench_finish(&bench);
}

static void it_pauses_longer_each_time_but_no_longer_than_a_tenth_of_a_second(void **state)
{
    static const char *const pauses[] = {PAUSE("1", "1"),  PAUSE("1", "2"),   PAUSE("1", "4"),
                                         PAUSE("1", "8"),  PAUSE("2", "16"),  PAUSE("2", "32"),
                                         PAUSE("2", "64"), PAUSE("3", "100"), PAUSE("3", "100")};
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(TWO, "1", "0"));
    must_send(own, MAY_IT);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        say_standing(own, 700, 699);
        must_send(own, pauses[i]);
        must_reply(bench.client, "");
        now_ms += 1000000;
    }
    say_standing(own, 700, 701);
    must_reply(bench.client, ":2\r\n");
    bench_finish(&bench);
}

/* The time that it was given counts from a primary's first word. */
static void it_ends_in_time_with_as_many_as_have_it(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(TWO, "1", "5"));
    must_send(own, MAY_IT);
    now_ms = BEGINNING + 100;
    say_standing(own, 700, 0);
    must_send(own, PAUSE("1", "1"));
    now_ms += 2;
    say_standing(own, 700, 0);
    must_send(own, PAUSE("1", "2"));
    now_ms += 2;
    say_standing(own, 700, 0);
    must_send(own, PAUSE("1", "1")); /* what is left of it */
    now_ms += 1;
    say_standing(own, 700, 0);
    must_reply(bench.client, ":1\r\n");
    assert_false(bench.client->pinned.waiting);
    bench_finish(&bench);
}

/* What was written before WAIT is meant, and that is no more than the primary had done then. */
static void what_the_primary_does_meanwhile_is_not_waited_for(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(TWO, "1", "0"));
    must_send(own, MAY_IT);
    say_standing(own, 0, 0);
    must_send(own, PAUSE("1", "1"));
    cache_says(own, ":0\r\n");
    cache_says(own, "$145\r\nrole:master\r\nslave0:ip=h,port=1,state=online,offset=700\r\n"
                    "slave1:ip=h,port=2,state=online,offset=700\r\n"
                    "master_replid:abc\r\nmaster_repl_offset:9999\r\n\r\n");
    must_reply(bench.client, ":2\r\n");
    bench_finish(&bench);
}

static void a_user_who_may_not_ask_info_is_told_so(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
    must_send(own, MAY_IT);
    cache_says(own, ":0\r\n");
    must_reply(bench.client, "");
    cache_says(own, DENIED);
    must_reply(bench.client, DENIED);
    assert_false(bench.client->pinned.waiting);
    bench_finish(&bench);
}

/* Its answer to INFO, which comes behind, is nobody's. */
static void a_user_who_may_not_wait_is_told_so(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
    cache_says(own, DENIED);
    assert_false(bench.client->pinned.waiting);
    cache_says(own, "$0\r\n\r\n");
    must_reply(bench.client, DENIED);
    bench_finish(&bench);
}

static void what_is_no_number_is_no_leave_to_wait(void **state)
{
    static const char *const others[] = {"+OK\r\n", "$1\r\n0\r\n", "*0\r\n", "+QUEUED\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct bench bench;
        struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
        cache_says(own, others[i]);
        assert_false(bench.client->pinned.waiting);
        cache_says(own, "$0\r\n\r\n");
        must_reply(bench.client,
                   "-NESTGUARD cache error: its reply is none that this command has\r\n");
        bench_finish(&bench);
    }
}

static void a_server_that_does_not_say_how_far_it_is_is_an_error(void **state)
{
    static const char *const others[] = {"$12\r\nrole:slave\r\n\r\n", "$13\r\nrole:master\r\n\r\n",
                                         "$0\r\n\r\n", "+OK\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct bench bench;
        struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
        cache_says(own, ":0\r\n");
        cache_says(own, others[i]);
        must_reply(bench.client, "-NESTGUARD cache error: it does not say how far it is\r\n");
        bench_finish(&bench);
    }
}

static void a_lost_connection_is_an_error(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
    cache_is_lost(own);
    assert_true(span_starts(buffer_span(&bench.client->replies.out), "-"));
    buffer_clear(&bench.client->replies.out);
    assert_false(bench.client->pinned.waiting);
    bench_finish(&bench);
}

static void what_is_wrong_with_it_the_cache_says(void **state)
{
    static const char *const wrong[] = {
        WAIT("$1\r\nx\r\n", "1", "0"), WAIT(ONE, "1", "x"), WAIT(ONE, "2", "-1"),
        WAIT(ONE, "20", "99999999999999999999"),
        "*3\r\n$4\r\nWAIT\r\n$24\r\n000000000000000000000001\r\n$1\r\n0\r\n"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct bench bench;
        struct upstream *own = typed(&bench, wrong[i]);
        must_send(own, wrong[i]);
        assert_true(upstream_is_waiting(own));
        cache_says(own, "-ERR the cache's words\r\n");
        must_reply(bench.client, "-ERR the cache's words\r\n");
        bench_finish(&bench);
    }
}

static void what_is_sent_behind_it_is_served_behind_it(void **state)
{
    struct bench bench;
    (void)state;
    struct upstream *own = typed(&bench, WAIT(ONE, "1", "0") PING);
    must_send(own, MAY_IT);
    say_standing(own, 700, 700);
    must_reply(bench.client, ":2\r\n");
    must_send(own, PING);
    cache_says(own, "+PONG\r\n");
    must_reply(bench.client, "+PONG\r\n");
    bench_finish(&bench);
}

/* Until it is its turn to be freed, somebody else may need a connection, or it is lost. */
static void who_goes_meanwhile_gives_its_connection_back_once(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct bench bench;
        struct upstream *own = typed(&bench, WAIT(ONE, "1", "0"));
        struct client *other = client_add(&bench.clients);
        bench.serving->own_limit = 1;
        client_close(bench.client);
        if (lost)
            cache_is_lost(own);
        assert_true(pinned_make_room(other, 1));
        assert_true(own->closed);
        assert_int_equal(bench.serving->own_connections, 0);
        assert_false(pinned_is_blocked(bench.client));
        pinned_check(bench.client, now_ms);
        bench_finish(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_ends_at_once_when_enough_have_it),
        cmocka_unit_test(it_pauses_longer_each_time_but_no_longer_than_a_tenth_of_a_second),
        cmocka_unit_test(it_ends_in_time_with_as_many_as_have_it),
        cmocka_unit_test(what_the_primary_does_meanwhile_is_not_waited_for),
        cmocka_unit_test(a_user_who_may_not_ask_info_is_told_so),
        cmocka_unit_test(a_user_who_may_not_wait_is_told_so),
        cmocka_unit_test(what_is_no_number_is_no_leave_to_wait),
        cmocka_unit_test(a_server_that_does_not_say_how_far_it_is_is_an_error),
        cmocka_unit_test(a_lost_connection_is_an_error),
        cmocka_unit_test(what_is_wrong_with_it_the_cache_says),
        cmocka_unit_test(what_is_sent_behind_it_is_served_behind_it),
        cmocka_unit_test(who_goes_meanwhile_gives_its_connection_back_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
