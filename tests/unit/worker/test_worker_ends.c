/* A worker whose clients vanish, err or do not read, and its end in the middle of everything. Also
 * to be run under ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker_bench.h"

/* ---- clients that go ---- */

/* What comes for it is taken by nobody, and least of all by the client that follows. */
static void a_client_may_vanish_with_requests_at_the_cache(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 PING MGET "EXISTS item:1 item:2\r\n" GET_ABSENT);
    must_hear(bench.cache, GET_ITEM_1 PING MGET);
    vanish(client);
    must_lose_clients(&bench, 0);
    int next = connect_client(&bench);
    say(next, "GET other\r\n");
    must_hear(bench.cache, "*2\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n*2\r\n$6\r\nEXISTS\r\n$6\r\n"
                           "item:2\r\n*2\r\n$3\r\nGET\r\n$5\r\nother\r\n");
    cache_says(bench.cache, NIL "+PONG\r\n*3\r\n$-1\r\n$-1\r\n$-1\r\n:1\r\n:0\r\n$1\r\no\r\n");
    must_hear(next, "$1\r\no\r\n");
    must_not_ask(&bench.keeper);
    close(next);
    bench_finish(&bench);
}

static void a_client_may_vanish_with_loads_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 MGET);
    must_hear(bench.cache, GET_ITEM_1 MGET);
    cache_says(bench.cache, NIL "*3\r\n$-1\r\n$-1\r\n$-1\r\n");
    struct load_request *get = next_load(&bench.keeper, "item:1");
    struct load_request *first = next_load(&bench.keeper, "item:1");
    struct load_request *second = next_load(&bench.keeper, "item:2");
    return_row(first, "half of the MGET");
    vanish(client);
    must_lose_clients(&bench, 0);
    return_row(get, "nobody's");
    return_outcome(second, LOAD_TIMEOUT);
    int next = connect_client(&bench);
    must_serve(&bench, next);
    close(next);
    bench_finish(&bench);
}

static void a_client_may_vanish_with_a_hint_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, SET_NEW);
    must_hear(bench.cache, SET_NEW);
    vanish(client);
    must_lose_clients(&bench, 0);
    cache_says(bench.cache, "+OK\r\n");
    mailbox_return(&next_hint(&bench.keeper, "item:new")->message);
    int next = connect_client(&bench);
    must_serve(&bench, next);
    close(next);
    bench_finish(&bench);
}

static void client_and_cache_may_go_together(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, GET_ITEM_1 MGET PING);
    must_hear(bench.cache, GET_ITEM_1 MGET PING);
    say(other, PING);
    must_hear(bench.cache, PING);
    vanish(client);
    fake_cache_close(bench.cache);
    must_hear(other, CACHE_DOWN);
    must_lose_clients(&bench, 1);
    serve_cache(&bench);
    must_serve(&bench, other);
    while (bench.keeper.inbox_count) /* loads, if the loss was seen before the client's end */
        return_outcome((struct load_request *)(void *)next_message(&bench.keeper, MESSAGE_LOAD),
                       LOAD_ABSENT);
    close(other);
    send_drain(&bench);
    while (!bench.keeper.drained) {
        uv_run(&bench.keeper.loop, UV_RUN_NOWAIT);
        while (bench.keeper.inbox_count)
            return_outcome((struct load_request *)(void *)next_message(&bench.keeper, MESSAGE_LOAD),
                           LOAD_ABSENT);
        uv_sleep(1);
    }
    bench_free(&bench);
}

static void a_clients_end_of_input_in_a_command_harms_nobody(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, "*2\r\n$3\r\nGET\r\n$100\r\nitem:");
    must_serve(&bench, other);
    close(client);
    must_lose_clients(&bench, 1);
    must_serve(&bench, other);
    close(other);
    bench_finish(&bench);
}

static void a_protocol_error_closes_after_the_replies_before_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, GET_ITEM_1 GET_ABSENT "*1\r\nx\r\n" PING);
    must_hear(bench.cache, GET_ITEM_1);
    must_be_silent(client);
    cache_says(bench.cache, "$1\r\n1\r\n");
    must_end(client, "$1\r\n1\r\n" NIL "-ERR Protocol error: expected '$', got 'x'\r\n");
    must_serve(&bench, other);
    close(other);
    bench_finish(&bench);
}

static void quit_closes_after_the_replies_before_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 "QUIT\r\n" PING);
    must_hear(bench.cache, GET_ITEM_1);
    cache_says(bench.cache, NIL);
    return_row(next_load(&bench.keeper, "item:1"), "one");
    must_end(client, "$3\r\none\r\n+OK\r\n");
    must_be_silent(bench.cache);
    bench_finish(&bench);
}

static void a_client_too_many_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "max_clients: 1\n");
    serve_cache(&bench);
    int client = connect_client(&bench);
    must_serve(&bench, client);
    must_end(connect_client(&bench), "-ERR max number of clients reached\r\n");
    must_lose_clients(&bench, 1);
    must_serve(&bench, client);
    vanish(client);
    must_lose_clients(&bench, 0);
    client = connect_client(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

/* ---- much at once ---- */

/* More than are served at once: reading stops and must go on again. */
static void a_deep_pipeline_is_served_to_its_end(void **state)
{
    enum { DEPTH = 5000 };
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    for (int i = 0; i < DEPTH; i++)
        say(client, i % 2 ? "GET item:nothere\r\n" : PING);
    for (int i = 0; i < DEPTH / 2; i++) {
        must_hear(bench.cache, PING);
        cache_says(bench.cache, "+PONG\r\n");
        must_hear(client, "+PONG\r\n" NIL);
    }
    close(client);
    bench_finish(&bench);
}

/* A command and the reply that it gets from the guard alone. */
struct rejected {
    const char *command, *reply;
};

static const struct rejected rejected[] = {
    {GET_ABSENT, NIL},
    {"*2\r\n$3\r\nTTL\r\n$10\r\nitem:nothe\r\n", ":-2\r\n"},
    {"*2\r\n$4\r\nTYPE\r\n$10\r\nitem:nothe\r\n", "+none\r\n"},
    {"*2\r\n$6\r\nSTRLEN\r\n$10\r\nitem:nothe\r\n", ":0\r\n"},
    {"*2\r\n$7\r\nHGETALL\r\n$10\r\nitem:nothe\r\n", "*0\r\n"},
    {"EXISTS item:nothe item:noth\r\n", ":0\r\n"},
    {"*3\r\n$4\r\nHGET\r\n$10\r\nitem:nothe\r\n$1\r\nx\r\n", NIL},
    {"*3\r\n$4\r\nMGET\r\n$6\r\nitem:x\r\n$6\r\nitem:y\r\n", "*2\r\n" NIL NIL}};

enum { AT_ONCE = 100, COMMANDS_MAX = 12, TEXT_MAX = COMMANDS_MAX * 64 };

/* Some commands that no other client is likely to send in this order. */
static void send_some(int fd, char *replies)
{
    char commands[TEXT_MAX] = "";
    *replies = '\0';
    for (int i = 1 + rand() % COMMANDS_MAX; i > 0; i--) {
        const struct rejected *sent = &rejected[rand() % (int)(sizeof rejected / sizeof *rejected)];
        strcat(commands, sent->command);
        strcat(replies, sent->reply);
    }
    say(fd, commands);
}

/* While the first one's long pipeline is served, the others' commands come: they are served
 * together, more than a batch has room for. One in ten ends its input, and one in ten vanishes. */
static void clients_served_together_get_their_own_replies(void **state)
{
    enum { TIMES = 40, DEPTH = 1000 };
    static char replies[AT_ONCE][TEXT_MAX];
    struct bench bench;
    int clients[AT_ONCE];
    (void)state;
    bench_init(&bench);
    for (int i = 0; i < AT_ONCE; i++)
        clients[i] = connect_client(&bench);
    int first = connect_client(&bench);
    for (int time = 0; time < TIMES; time++) {
        for (int i = 0; i < DEPTH; i++)
            say(first, GET_ABSENT);
        for (int i = 0; i < AT_ONCE; i++)
            send_some(clients[i], replies[i]);
        for (int i = time % 10; i < AT_ONCE; i += 10)
            shutdown(clients[i], SHUT_WR);
        for (int i = (time + 5) % 10; i < AT_ONCE; i += 10)
            vanish(clients[i]);
        for (int i = 0; i < DEPTH; i++)
            must_hear(first, NIL);
        for (int i = 0; i < AT_ONCE; i++) {
            if (i % 10 == time % 10)
                must_end(clients[i], replies[i]);
            else if (i % 10 != (time + 5) % 10)
                must_hear(clients[i], replies[i]);
            if (i % 5 == time % 5)
                clients[i] = connect_client(&bench);
        }
    }
    for (int i = 0; i < AT_ONCE; i++)
        close(clients[i]);
    close(first);
    bench_finish(&bench);
}

static void a_large_value_passes_whole(void **state)
{
    enum { SIZE = 8 * 1024 * 1024 };
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    char *reply = xmalloc(SIZE + 1);
    int header = snprintf(reply, 40, "$%d\r\n", SIZE - 100);
    for (int i = header; i < SIZE; i++)
        reply[i] = (char)('a' + i % 26);
    size_t length = (size_t)header + SIZE - 100 + 2;
    memcpy(reply + length - 2, "\r\n", 2);
    say(client, GET_ITEM_1 GET_ITEM_2 GET_ABSENT);
    must_hear(bench.cache, GET_ITEM_1 GET_ITEM_2);
    fake_cache_say(bench.cache, reply, length);
    fake_cache_say(bench.cache, reply, length);
    must_hear_bytes(client, reply, length);
    must_hear_bytes(client, reply, length);
    must_hear(client, NIL);
    must_serve(&bench, other); /* the reader was slow, and shares no connection any more */
    free(reply);
    close(client);
    close(other);
    bench_finish(&bench);
}

static void a_client_that_does_not_read_is_dropped(void **state)
{
    enum { SIZE = 8 * 1024 * 1024 };
    struct bench bench;
    (void)state;
    bench_start(&bench, "output_timeout: 200ms\n");
    serve_cache(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    char *reply = xmalloc(SIZE);
    int header = snprintf(reply, 40, "$%d\r\n", SIZE - 100);
    memset(reply + header, 'x', (size_t)(SIZE - header));
    memcpy(reply + header + SIZE - 100, "\r\n", 2);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    fake_cache_say(bench.cache, reply, (size_t)header + SIZE - 100 + 2);
    must_lose_clients(&bench, 1);
    assert_int_equal(counter_read(&bench.worker->serving.counters.clients_dropped), 1);
    must_serve(&bench, other);
    free(reply);
    close(client);
    close(other);
    bench_finish(&bench);
}

/* ---- the end ---- */

static void an_idle_worker_ends_and_closes_its_clients(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    must_serve(&bench, client);
    send_drain(&bench);
    must_end(client, "");
    bench_free(&bench);
}

static void what_is_under_way_is_finished_before_the_end(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), writer = connect_client(&bench);
    say(client, GET_ITEM_1 PING);
    must_hear(bench.cache, GET_ITEM_1 PING);
    cache_says(bench.cache, NIL);
    struct load_request *load = next_load(&bench.keeper, "item:1");
    say(writer, SET_NEW);
    must_hear(bench.cache, SET_NEW);
    send_drain(&bench);
    return_row(load, "one");
    must_hear(client, "$3\r\none\r\n");
    cache_says(bench.cache, "+PONG\r\n+OK\r\n");
    must_end(client, "+PONG\r\n");
    mailbox_return(&next_hint(&bench.keeper, "item:new")->message);
    must_end(writer, "+OK\r\n");
    bench_free(&bench);
}

/* The keeper has something of the worker's: its memory must not go before that is back. */
static void the_end_waits_for_what_the_keeper_still_has(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    cache_says(bench.cache, NIL);
    struct load_request *load = next_load(&bench.keeper, "item:1");
    vanish(client);
    must_lose_clients(&bench, 0);
    send_drain(&bench);
    for (int i = 0; i < 25; i++) { /* more than two ticks of the worker */
        uv_sleep(10);
        uv_run(&bench.keeper.loop, UV_RUN_NOWAIT);
        assert_false(bench.keeper.drained);
    }
    return_row(load, "nobody's");
    bench_free(&bench);
}

static void clients_that_take_too_long_are_closed(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "drain_timeout: 50ms\n");
    serve_cache(&bench);
    int client = connect_client(&bench);
    say(client, PING GET_ITEM_1);
    must_hear(bench.cache, PING GET_ITEM_1);
    send_drain(&bench);
    must_end(client, "");
    bench_free(&bench);
}

static void must_lose_cache(struct bench *bench)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (!counter_read(&bench->worker->serving.counters.upstream_failures)) {
        assert_true(clock_ms() < until);
        uv_sleep(1);
    }
}

static void the_end_may_come_while_the_cache_is_away(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, ""); /* connecting, or waiting for the greeting */
    send_drain(&bench);
    bench_free(&bench);
    bench_start(&bench, "");
    fake_cache_close(accept_cache(&bench));
    must_lose_cache(&bench); /* backing off */
    send_drain(&bench);
    bench_free(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_may_vanish_with_requests_at_the_cache),
        cmocka_unit_test(a_client_may_vanish_with_loads_under_way),
        cmocka_unit_test(a_client_may_vanish_with_a_hint_under_way),
        cmocka_unit_test(client_and_cache_may_go_together),
        cmocka_unit_test(a_clients_end_of_input_in_a_command_harms_nobody),
        cmocka_unit_test(a_protocol_error_closes_after_the_replies_before_it),
        cmocka_unit_test(quit_closes_after_the_replies_before_it),
        cmocka_unit_test(a_client_too_many_is_refused),
        cmocka_unit_test(a_deep_pipeline_is_served_to_its_end),
        cmocka_unit_test(clients_served_together_get_their_own_replies),
        cmocka_unit_test(a_large_value_passes_whole),
        cmocka_unit_test(a_client_that_does_not_read_is_dropped),
        cmocka_unit_test(an_idle_worker_ends_and_closes_its_clients),
        cmocka_unit_test(what_is_under_way_is_finished_before_the_end),
        cmocka_unit_test(the_end_waits_for_what_the_keeper_still_has),
        cmocka_unit_test(clients_that_take_too_long_are_closed),
        cmocka_unit_test(the_end_may_come_while_the_cache_is_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
