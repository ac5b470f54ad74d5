/* A worker thread: replies in the order of the commands, whatever arrives when. Also to be run
 * under ThreadSanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "worker_bench.h"

/* ---- one command ---- */

static void an_absent_key_is_answered_without_cache_and_keeper(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ABSENT);
    must_hear(client, NIL);
    must_be_silent(bench.cache);
    must_not_ask(&bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 1);
    close(client);
    bench_finish(&bench);
}

static void a_hit_is_the_caches_reply(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    cache_says(bench.cache, "$5\r\nva");
    must_be_silent(client);
    cache_says(bench.cache, "lue\r\n");
    must_hear(client, "$5\r\nvalue\r\n");
    must_not_ask(&bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 1);
    close(client);
    bench_finish(&bench);
}

static void a_miss_is_loaded(void **state)
{
    static const struct {
        enum load_outcome outcome;
        const char *reply;
    } rows[] = {{LOAD_ABSENT, NIL},
                {LOAD_BUSY, "-NESTGUARD busy"},
                {LOAD_TIMEOUT, "-NESTGUARD timeout"},
                {LOAD_DOWN, "-NESTGUARD database down\r\n"},
                {LOAD_REFUSED, "-NESTGUARD database error"},
                {LOAD_AMBIGUOUS, "-NESTGUARD ambiguous"}};
    struct bench bench;
    (void)state;
    bench_init(&bench);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int client = connect_client(&bench);
        say(client, GET_ITEM_1);
        must_hear(bench.cache, GET_ITEM_1);
        cache_says(bench.cache, NIL);
        return_outcome(next_load(&bench.keeper, "item:1"), rows[i].outcome);
        must_hear(client, rows[i].reply);
        close(client);
    }
    int client = connect_client(&bench);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    cache_says(bench.cache, NIL);
    return_row(next_load(&bench.keeper, "item:1"), "row");
    must_hear(client, "$3\r\nrow\r\n");
    close(client);
    bench_finish(&bench);
}

static void where_the_application_loads_a_miss_is_its_to_see(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "GET passed:1\r\nGET passed:nothere\r\n");
    must_hear(bench.cache, "*2\r\n$3\r\nGET\r\n$8\r\npassed:1\r\n");
    cache_says(bench.cache, NIL);
    must_hear(client, NIL "$4\r\nnope\r\n");
    must_not_ask(&bench.keeper);
    close(client);
    bench_finish(&bench);
}

static void a_shadow_keyspace_lets_pass_and_counts(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "GET shadow:nothere\r\n");
    must_hear(bench.cache, "*2\r\n$3\r\nGET\r\n$14\r\nshadow:nothere\r\n");
    mailbox_return(
        next_message(&bench.keeper, MESSAGE_FN_CHECK)); /* a sample of what would be rejected */
    cache_says(bench.cache, NIL);
    return_outcome(next_load(&bench.keeper, "shadow:nothere"), LOAD_ABSENT);
    must_hear(client, NIL);
    assert_int_equal(COUNTED(&bench, SHADOWS, would_reject), 1);
    assert_int_equal(COUNTED(&bench, SHADOWS, rejected), 0);
    close(client);
    bench_finish(&bench);
}

/* ---- order ---- */

/* A test may take its time wherever it likes, and so may the machine. */
static void what_the_guard_asks_by_itself_comes_between_no_commands(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, PING);
    unsigned asked = fake_cache_roles();
    for (uint64_t until = clock_ms() + PATIENCE_MS; fake_cache_roles() == asked; uv_sleep(1))
        assert_true(clock_ms() < until);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, PING GET_ITEM_1);
    must_be_silent(bench.cache);
    cache_says(bench.cache, "+PONG\r\n$1\r\n");
    must_hear(client, "+PONG\r\n");
    cache_says(bench.cache, "1\r\n");
    must_hear(client, "$1\r\n1\r\n");
    close(client);
    bench_finish(&bench);
}

static void a_local_answer_waits_behind_a_forwarded_one(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 GET_ABSENT "PING\r\n" GET_ABSENT);
    must_hear(bench.cache, GET_ITEM_1 "*1\r\n$4\r\nPING\r\n");
    must_be_silent(client);
    cache_says(bench.cache, "$1\r\n1\r\n");
    must_hear(client, "$1\r\n1\r\n" NIL);
    must_be_silent(client);
    cache_says(bench.cache, "+PONG\r\n");
    must_hear(client, "+PONG\r\n" NIL);
    close(client);
    bench_finish(&bench);
}

static void a_load_that_is_done_first_waits_for_its_turn(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1 GET_ABSENT GET_ITEM_2 "PING\r\n");
    must_hear(bench.cache, GET_ITEM_1 GET_ITEM_2 "*1\r\n$4\r\nPING\r\n");
    cache_says(bench.cache, NIL NIL "+PONG\r\n");
    struct load_request *one = next_load(&bench.keeper, "item:1");
    return_row(next_load(&bench.keeper, "item:2"), "two");
    must_be_silent(client);
    return_row(one, "one");
    must_hear(client, "$3\r\none\r\n" NIL "$3\r\ntwo\r\n+PONG\r\n");
    close(client);
    bench_finish(&bench);
}

static void clients_do_not_get_each_others_replies(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int a = connect_client(&bench), b = connect_client(&bench);
    say(a, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    say(b, GET_ITEM_2);
    must_hear(bench.cache, GET_ITEM_2);
    cache_says(bench.cache, NIL "$1\r\nb\r\n");
    must_hear(b, "$1\r\nb\r\n");
    must_be_silent(a);
    return_row(next_load(&bench.keeper, "item:1"), "a");
    must_hear(a, "$1\r\na\r\n");
    close(a);
    close(b);
    bench_finish(&bench);
}

/* ---- commands of many keys ---- */

static void an_mget_is_put_together_in_place(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "MGET item:1 item:nothere other item:2 passed:nothere item:3\r\n");
    must_hear(bench.cache, "*5\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n$6\r\nitem:2\r\n"
                           "$6\r\nitem:3\r\n");
    cache_says(bench.cache, "*4\r\n$3\r\none\r\n$-1\r\n$-1\r\n$-1\r\n");
    struct load_request *two = next_load(&bench.keeper, "item:2");
    return_outcome(next_load(&bench.keeper, "item:3"), LOAD_BUSY);
    must_be_silent(client);
    return_row(two, "two");
    must_hear(client,
              "*6\r\n$3\r\none\r\n$-1\r\n$-1\r\n$3\r\ntwo\r\n$4\r\nnope\r\n"
              "-NESTGUARD busy: no turn at the database within load_timeout, try again\r\n");
    close(client);
    bench_finish(&bench);
}

static void an_mget_of_absent_keys_asks_nobody(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "MGET item:nothere item:neither\r\n");
    must_hear(client, "*2\r\n" NIL NIL);
    must_be_silent(bench.cache);
    close(client);
    bench_finish(&bench);
}

static void an_mget_of_one_key_twice_is_answered_twice(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "MGET item:1 item:1\r\n");
    must_hear(bench.cache, "*3\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$6\r\nitem:1\r\n");
    cache_says(bench.cache, "*2\r\n" NIL NIL);
    struct load_request *first = next_load(&bench.keeper, "item:1");
    return_row(next_load(&bench.keeper, "item:1"), "b");
    return_row(first, "a");
    must_hear(client, "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
    close(client);
    bench_finish(&bench);
}

/* A cache out of its mind must not make a reply with elements missing. */
static void an_mget_reply_of_the_wrong_length_gets_no_broken_reply(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "MGET other item:1\r\n");
    must_hear(bench.cache, "*3\r\n$4\r\nMGET\r\n$5\r\nother\r\n$6\r\nitem:1\r\n");
    cache_says(bench.cache, "*1\r\n$1\r\na\r\n");
    return_row(next_load(&bench.keeper, "item:1"), "row");
    must_hear(client, "*2\r\n-NESTGUARD cache error: its reply is none that this command has\r\n"
                      "$3\r\nrow\r\n");
    close(client);
    bench_finish(&bench);
}

static void exists_counts_over_filter_cache_and_database(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "EXISTS item:1 item:nothere other item:2 item:3 item:1\r\n");
#define ASKS(length, key) "*2\r\n$6\r\nEXISTS\r\n$" length "\r\n" key "\r\n"
    must_hear(bench.cache, ASKS("6", "item:1") ASKS("5", "other") ASKS("6", "item:2")
                               ASKS("6", "item:3") ASKS("6", "item:1"));
    cache_says(bench.cache, ":1\r\n:1\r\n:0\r\n:0\r\n:1\r\n");
    struct load_request *two = next_load(&bench.keeper, "item:2");
    return_outcome(next_load(&bench.keeper, "item:3"), LOAD_ABSENT);
    must_be_silent(client);
    return_row(two, "");
    must_hear(client, ":4\r\n");
    close(client);
    bench_finish(&bench);
}

static void exists_gives_no_count_that_leaves_out_a_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "EXISTS item:1 item:2\r\n");
    must_hear(bench.cache, ASKS("6", "item:1") ASKS("6", "item:2"));
    cache_says(bench.cache, ":1\r\n:0\r\n");
    return_outcome(next_load(&bench.keeper, "item:2"), LOAD_DOWN);
    must_hear(client, "-NESTGUARD database down\r\n");
    close(client);
    bench_finish(&bench);
}

/* ---- commands that nobody knows ---- */

/* One may have no reply, or two, which on a shared connection would be others'. */
static void an_unknown_command_has_a_connection_of_its_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, "MODULE.TALK\r\n");
    int own = accept_own(&bench);
    must_hear(own, "*1\r\n$11\r\nMODULE.TALK\r\n");
    must_serve(&bench, other);
    cache_says(own, "+one\r\n+two\r\n");
    must_hear(client, "+one\r\n");
    must_serve(&bench, other);
    close(client);
    close(other);
    fake_cache_close(own);
    bench_finish(&bench);
}

static void an_unknown_command_without_a_reply_holds_nobody_else_up(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, "MODULE.MUTE\r\n");
    int own = accept_own(&bench);
    must_hear(own, "*1\r\n$11\r\nMODULE.MUTE\r\n");
    must_serve(&bench, other);
    fake_cache_close(own); /* it never says a word about it */
    must_hear(client, CACHE_DOWN);
    must_serve(&bench, other);
    close(client);
    close(other);
    bench_finish(&bench);
}

/* ---- writes ---- */

/* Every worker must know the key before the writer may tell anybody of it. */
static void a_writes_reply_waits_until_every_worker_knows_the_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, SET_NEW GET_ABSENT);
    must_hear(bench.cache, SET_NEW);
    cache_says(bench.cache, "+OK\r\n");
    struct write_request *hint = next_hint(&bench.keeper, "item:new");
    must_be_silent(client);
    mailbox_return(&hint->message);
    must_hear(client, "+OK\r\n" NIL);
    close(client);
    bench_finish(&bench);
}

/* Neither a hint, nor anything left of the write: what was passed on behind it is decided anew. */
static void a_refused_write_has_no_effect(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench), other = connect_client(&bench);
    say(client, SET_NEW GET_NEW);
    must_hear(bench.cache, SET_NEW GET_NEW);
    cache_says(bench.cache, "-NOPERM\r\n" NIL);
    must_hear(client, "-NOPERM\r\n" NIL);
    say(other, GET_NEW "EXISTS item:new\r\n");
    must_hear(other, NIL ":0\r\n");
    must_not_ask(&bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, hints), 0);
    close(client);
    close(other);
    bench_finish(&bench);
}

static void a_write_of_nothing_has_no_effect(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "SET item:new v XX\r\nMGET item:new other\r\nEXISTS item:new\r\n");
    must_hear(bench.cache, "*4\r\n$3\r\nSET\r\n$8\r\nitem:new\r\n$1\r\nv\r\n$2\r\nXX\r\n");
    must_hear(bench.cache, "*3\r\n$4\r\nMGET\r\n$8\r\nitem:new\r\n$5\r\nother\r\n");
    must_hear(bench.cache, "*2\r\n$6\r\nEXISTS\r\n$8\r\nitem:new\r\n");
    cache_says(bench.cache, NIL "*2\r\n" NIL NIL ":0\r\n");
    must_hear(client, NIL "*2\r\n" NIL NIL ":0\r\n");
    must_not_ask(&bench.keeper);
    close(client);
    bench_finish(&bench);
}

/* The refused one's end is not the other's. */
static void of_two_writers_of_a_key_one_may_be_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int one = connect_client(&bench), two = connect_client(&bench);
    say(one, SET_NEW);
    must_hear(bench.cache, SET_NEW);
    say(two, SET_NEW GET_NEW);
    must_hear(bench.cache, SET_NEW GET_NEW);
    cache_says(bench.cache, "-OOM\r\n");
    must_hear(one, "-OOM\r\n");
    say(one, GET_NEW);
    must_hear(bench.cache, GET_NEW);
    cache_says(bench.cache, "+OK\r\n$1\r\nv\r\n$1\r\nv\r\n");
    must_hear(one, "$1\r\nv\r\n");
    mailbox_return(&next_hint(&bench.keeper, "item:new")->message);
    must_hear(two, "+OK\r\n$1\r\nv\r\n");
    close(one);
    close(two);
    bench_finish(&bench);
}

/* It may have been done, and nobody can tell. */
static void a_write_whose_reply_is_lost_is_a_hint(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, SET_NEW);
    must_hear(bench.cache, SET_NEW);
    fake_cache_close(bench.cache);
    struct write_request *hint = next_hint(&bench.keeper, "item:new");
    must_be_silent(client);
    mailbox_return(&hint->message);
    must_hear(client, CACHE_DOWN);
    serve_cache(&bench);
    close(client);
    bench_finish(&bench);
}

/* A client's keys are half of the places; and nothing has gone to the cache. */
static void a_write_of_more_new_keys_than_a_client_may_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_start(&bench, "max_hints: 4\n");
    serve_cache(&bench);
    int client = connect_client(&bench);
    say(client, "MSET item:x 1 item:y 1 item:z 1\r\nMSET item:1 1 item:2 2 item:3 3\r\n");
    must_hear(bench.cache,
              "*7\r\n$4\r\nMSET\r\n$6\r\nitem:1\r\n$1\r\n1\r\n$6\r\nitem:2\r\n$1\r\n2\r\n"
              "$6\r\nitem:3\r\n$1\r\n3\r\n");
    cache_says(bench.cache, "+OK\r\n");
    must_hear(client, "-NESTGUARD busy: too many keys that no row is known for were written "
                      "(max_hints), try again later\r\n+OK\r\n");
    close(client);
    bench_finish(&bench);
}

static void the_writers_next_command_finds_its_key_admitted(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, SET_NEW "GET item:new\r\n");
    must_hear(bench.cache, SET_NEW "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n");
    cache_says(bench.cache, "+OK\r\n$1\r\nv\r\n");
    mailbox_return(&next_hint(&bench.keeper, "item:new")->message);
    must_hear(client, "+OK\r\n$1\r\nv\r\n");
    close(client);
    bench_finish(&bench);
}

/* And of one that the filter knows: the next one may not. */
static void an_mset_waits_for_the_hint_of_each_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, "MSET item:x 1 item:1 1 other 1 item:y 1\r\n");
    must_hear(bench.cache,
              "*9\r\n$4\r\nMSET\r\n$6\r\nitem:x\r\n$1\r\n1\r\n$6\r\nitem:1\r\n$1\r\n1\r\n"
              "$5\r\nother\r\n$1\r\n1\r\n$6\r\nitem:y\r\n$1\r\n1\r\n");
    cache_says(bench.cache, "+OK\r\n");
    struct write_request *x = next_hint(&bench.keeper, "item:x");
    mailbox_return(&next_hint(&bench.keeper, "item:1")->message);
    mailbox_return(&next_hint(&bench.keeper, "item:y")->message);
    must_be_silent(client);
    mailbox_return(&x->message);
    must_hear(client, "+OK\r\n");
    close(client);
    bench_finish(&bench);
}

/* ---- the keeper's orders ---- */

static void what_the_keeper_sends_holds_for_the_next_command(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    send_override(&bench, "item:1", OVERRIDE_TOMBSTONE);
    send_block(&bench, "item:2");
    say(client, GET_ITEM_1 GET_ITEM_2);
    must_hear(client, NIL NIL);
    send_view(&bench, KEYSPACE_PASSING);
    say(client, GET_ITEM_1 GET_ITEM_2);
    must_hear(bench.cache, GET_ITEM_1);
    cache_says(bench.cache, "$1\r\n1\r\n");
    must_hear(client, "$1\r\n1\r\n" NIL);
    send_override(&bench, "item:2", OVERRIDE_NONE);
    send_view(&bench, KEYSPACE_GUARDING);
    say(client, GET_ITEM_2);
    must_hear(bench.cache, GET_ITEM_2);
    cache_says(bench.cache, "$1\r\n2\r\n");
    must_hear(client, "$1\r\n2\r\n");
    close(client);
    bench_finish(&bench);
}

/* The reply belongs to the slot, whatever view holds by then. */
static void a_view_may_change_while_a_lookup_is_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    int client = connect_client(&bench);
    say(client, GET_ITEM_1);
    must_hear(bench.cache, GET_ITEM_1);
    send_view(&bench, KEYSPACE_PASSING);
    cache_says(bench.cache, NIL);
    struct load_request *load = next_load(&bench.keeper, "item:1");
    send_view(&bench, KEYSPACE_GUARDING);
    return_row(load, "row");
    must_hear(client, "$3\r\nrow\r\n");
    close(client);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_key_is_answered_without_cache_and_keeper),
        cmocka_unit_test(a_hit_is_the_caches_reply),
        cmocka_unit_test(a_miss_is_loaded),
        cmocka_unit_test(where_the_application_loads_a_miss_is_its_to_see),
        cmocka_unit_test(a_shadow_keyspace_lets_pass_and_counts),
        cmocka_unit_test(what_the_guard_asks_by_itself_comes_between_no_commands),
        cmocka_unit_test(a_local_answer_waits_behind_a_forwarded_one),
        cmocka_unit_test(a_load_that_is_done_first_waits_for_its_turn),
        cmocka_unit_test(clients_do_not_get_each_others_replies),
        cmocka_unit_test(an_mget_is_put_together_in_place),
        cmocka_unit_test(an_mget_of_absent_keys_asks_nobody),
        cmocka_unit_test(an_mget_of_one_key_twice_is_answered_twice),
        cmocka_unit_test(an_mget_reply_of_the_wrong_length_gets_no_broken_reply),
        cmocka_unit_test(exists_counts_over_filter_cache_and_database),
        cmocka_unit_test(exists_gives_no_count_that_leaves_out_a_key),
        cmocka_unit_test(a_writes_reply_waits_until_every_worker_knows_the_key),
        cmocka_unit_test(an_unknown_command_has_a_connection_of_its_own),
        cmocka_unit_test(an_unknown_command_without_a_reply_holds_nobody_else_up),
        cmocka_unit_test(a_refused_write_has_no_effect),
        cmocka_unit_test(a_write_of_nothing_has_no_effect),
        cmocka_unit_test(of_two_writers_of_a_key_one_may_be_refused),
        cmocka_unit_test(a_write_whose_reply_is_lost_is_a_hint),
        cmocka_unit_test(a_write_of_more_new_keys_than_a_client_may_is_refused),
        cmocka_unit_test(the_writers_next_command_finds_its_key_admitted),
        cmocka_unit_test(an_mset_waits_for_the_hint_of_each_key),
        cmocka_unit_test(what_the_keeper_sends_holds_for_the_next_command),
        cmocka_unit_test(a_view_may_change_while_a_lookup_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
