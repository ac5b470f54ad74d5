/* A worker whose cache is lost, lies or keeps silent. Also to be run under ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker/worker_report.h"
#include "worker_bench.h"

/* ---- the cache ---- */

static void what_comes_before_the_cache_is_there_waits_for_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "");
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 PING);
    bench.cache = accept_cache(&bench);
    must_be_silent(bench.cache); /* nothing is sent to the wrong database */
    cache_says(bench.cache, WELCOME);
    must_hear(bench.cache, GET_ITEM_1 PING);
    cache_says(bench.cache, "$1\r\n1\r\n+PONG\r\n");
    must_hear(client, "$1\r\n1\r\n+PONG\r\n");
    close(client);
    bench_finish(&bench);
}

static void a_cache_lost_with_requests_in_flight_fails_them_in_order(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 PING GET_PASSED GET_ABSENT MGET "EXISTS item:1 other\r\n");
    must_hear(bench.cache, GET_ITEM_1 PING GET_PASSED MGET);
    fake_cache_close(bench.cache);
    return_row(next_load(&bench.keeper, "item:1"), "one");
    must_hear(client, "$3\r\none\r\n" CACHE_DOWN CACHE_DOWN NIL);
    return_row(next_load(&bench.keeper, "item:1"), "one");
    return_outcome(next_load(&bench.keeper, "item:2"), LOAD_ABSENT);
    must_hear(client, "*3\r\n$3\r\none\r\n" CACHE_DOWN NIL);
    return_row(next_load(&bench.keeper, "item:1"), "one");
    must_hear(client, CACHE_DOWN); /* `other` could not be counted */
    assert_int_equal(COUNTED(&bench, PASSED, cache_failures), 1);
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

static void half_a_reply_before_the_loss_is_no_reply(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "GET other\r\n");
    must_hear(bench.cache, "*2\r\n$3\r\nGET\r\n$5\r\nother\r\n");
    cache_says(bench.cache, "$10\r\nabc");
    fake_cache_close(bench.cache);
    must_hear(client, CACHE_DOWN);
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

static void while_the_cache_is_away_rows_answer_and_the_rest_fails_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "");
    bench.cache = accept_cache(&bench);
    int client = connect_client(&bench);
    say(client, PING);
    fake_cache_close(bench.cache);
    must_hear(client, CACHE_DOWN);
    bench.cache = accept_cache(&bench); /* it is there again, but does not greet */
    say(client, GET_ABSENT GET_ITEM_1 PING);
    must_hear(client, NIL);
    return_row(next_load(&bench.keeper, "item:1"), "one");
    must_hear(client, "$3\r\none\r\n" CACHE_DOWN);
    must_be_silent(bench.cache);
    cache_says(bench.cache, WELCOME);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

/* As a cache does that was given a password while the guard ran. */
static void a_cache_that_refuses_the_greeting_is_a_cache_that_is_down(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "");
    int client = connect_client(&bench);
    say(client, PING);
    bench.cache = accept_cache(&bench);
    cache_says(bench.cache, "-NOAUTH Authentication required.\r\n");
    must_hear(client, CACHE_DOWN);
    must_end(bench.cache, "");
    bench.cache = accept_cache(&bench);
    cache_says(bench.cache, "-ERR DB index is out of range\r\n");
    must_end(bench.cache, "");
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

static void a_cache_that_speaks_another_protocol_is_given_up(void **state)
{
    static const char *const noises[] = {"HTTP/1.1 200 OK\r\n\r\n", "$-7\r\n", "*1\r\n!?\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    for (size_t i = 0; i < sizeof noises / sizeof *noises; i++) {
        say(client, PING);
        must_hear(bench.cache, PING);
        cache_says(bench.cache, noises[i]);
        must_hear(client, CACHE_DOWN);
        must_end(bench.cache, "");
        serve_cache(&bench);
    }
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

/* From then on every reply would go to the wrong request. */
static void a_reply_that_nobody_asked_for_ends_the_connection(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, PING);
    must_hear(bench.cache, PING);
    cache_says(bench.cache, "+PONG\r\n+SURPRISE\r\n");
    must_hear(client, "+PONG\r\n");
    must_end(bench.cache, "");
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

#define LIMIT(name_length, name, length, value)                                                    \
    "*2\r\n$" name_length "\r\n" name "\r\n$" length "\r\n" value "\r\n"

/* It would hang up on whoever sends more, and on all who share the connection. */
static void what_the_cache_would_punish_does_not_reach_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "");
    bench.cache = accept_cache(&bench);
    cache_says(bench.cache, OWN_WELCOME "+OK\r\n" LIMIT("18", "proto-max-bulk-len", "4", "2000")
                                LIMIT("10", "maxclients", "5", "10000"));
    int client = connect_client(&bench), other = connect_client(&bench);
    must_serve(&bench, other);
    say(client, "*2\r\n$3\r\nGET\r\n$2001\r\n");
    must_end(client, "-ERR Protocol error: invalid bulk length\r\n");
    must_serve(&bench, other);
    close(other);
    bench_finish(&bench);
}

/* The places of a small cache are not all for one worker's clients. */
static void own_connections_keep_to_the_places_of_the_cache(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "workers: 1\n");
    bench.cache = accept_cache(&bench);
    cache_says(bench.cache,
               OWN_WELCOME "+OK\r\n" LIMIT("18", "proto-max-bulk-len", "9", "536870912")
                   LIMIT("10", "maxclients", "1", "7"));
    int client = connect_client(&bench), other = connect_client(&bench);
    must_serve(&bench, client);
    say(client, "MULTI\r\n");
    int own = accept_own(&bench);
    must_hear(own, "*1\r\n$5\r\nMULTI\r\n");
    cache_says(own, "+OK\r\n");
    must_hear(client, "+OK\r\n");
    say(other, "MULTI\r\n");
    must_hear(other, "-NESTGUARD busy: own_connections are used up\r\n");
    struct worker_report report = {0};
    worker_report_add(&report, bench.worker);
    assert_int_equal(report.own_limit, 1);
    assert_int_equal(report.max_bulk, 536870912);
    close(client);
    close(other);
    fake_cache_close(own);
    bench_finish(&bench);
}

/* The last word is told in any case, a second later at most. */
static void a_cache_that_comes_and_goes_does_not_fill_the_log(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "");
    int client = connect_client(&bench);
    for (int i = 0; i < 6; i++) {
        serve_cache(&bench);
        must_serve(&bench, client);
        say(client, PING);
        must_hear(bench.cache, PING);
        fake_cache_close(bench.cache);
        must_hear(client, CACHE_DOWN);
    }
    assert_true(atomic_load(&log_warnings) <= 3);
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

static void a_silent_cache_is_given_up_in_time(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "cache_timeout: 500ms\n");
    serve_cache(&bench);
    int client = connect_client(&bench);
    say(client, PING GET_ITEM_1);
    must_hear(bench.cache, PING GET_ITEM_1);
    must_hear(client, CACHE_DOWN);
    return_outcome(next_load(&bench.keeper, "item:1"), LOAD_ABSENT);
    must_hear(client, NIL);
    must_end(bench.cache, "");
    bench.cache = accept_cache(&bench); /* silent already at the greeting */
    must_end(bench.cache, "");
    serve_cache(&bench);
    must_serve(&bench, client);
    close(client);
    bench_finish(&bench);
}

static void a_cache_that_is_starting_is_as_good_as_down(void **state)
{
    static const char loading[] = "-LOADING Redis is loading the dataset in memory\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 MGET "EXISTS item:1\r\n");
    must_hear(bench.cache, GET_ITEM_1 MGET "*2\r\n$6\r\nEXISTS\r\n$6\r\nitem:1\r\n");
    for (int i = 0; i < 3; i++)
        cache_says(bench.cache, loading);
    for (int i = 0; i < 4; i++) {
        struct load_request *load =
            (struct load_request *)(void *)next_message(&bench.keeper, MESSAGE_LOAD);
        return_row(load, "row");
    }
    must_hear(client, "$3\r\nrow\r\n*3\r\n$3\r\nrow\r\n");
    must_hear(client, loading);
    must_hear(client, "$3\r\nrow\r\n:1\r\n");
    close(client);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_before_the_cache_is_there_waits_for_it),
        cmocka_unit_test(a_cache_lost_with_requests_in_flight_fails_them_in_order),
        cmocka_unit_test(half_a_reply_before_the_loss_is_no_reply),
        cmocka_unit_test(while_the_cache_is_away_rows_answer_and_the_rest_fails_at_once),
        cmocka_unit_test(a_cache_that_refuses_the_greeting_is_a_cache_that_is_down),
        cmocka_unit_test(a_cache_that_speaks_another_protocol_is_given_up),
        cmocka_unit_test(a_reply_that_nobody_asked_for_ends_the_connection),
        cmocka_unit_test(what_the_cache_would_punish_does_not_reach_it),
        cmocka_unit_test(own_connections_keep_to_the_places_of_the_cache),
        cmocka_unit_test(a_cache_that_comes_and_goes_does_not_fill_the_log),
        cmocka_unit_test(a_silent_cache_is_given_up_in_time),
        cmocka_unit_test(a_cache_that_is_starting_is_as_good_as_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
