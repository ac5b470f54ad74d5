/* Lookups in hashes: that a field is not there is the cache's word only when the hash is; whatever
 * comes and goes between two looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"

#define HGET_F "*3\r\n$4\r\nHGET\r\n$6\r\nitem:1\r\n$1\r\nf\r\n"
#define HMGET_FG "*4\r\n$5\r\nHMGET\r\n$6\r\nitem:1\r\n$1\r\nf\r\n$1\r\ng\r\n"
#define HLEN "*2\r\n$4\r\nHLEN\r\n$6\r\nitem:1\r\n"
#define HGETALL "*2\r\n$7\r\nHGETALL\r\n$6\r\nitem:1\r\n"
#define WITH_F "*4\r\n$2\r\nid\r\n$1\r\n1\r\n$1\r\nf\r\n$1\r\nv\r\n"
#define WITHOUT_F "*2\r\n$2\r\nid\r\n$1\r\n1\r\n"

static void open_hashes(struct bench *bench)
{
    bench_init(bench, "");
    struct config *config = (struct config *)serving_config(bench->serving);
    config->keyspaces[ITEMS].fill = FILL_HASH;
}

/* The first look found nothing; the second is under way. */
static void look_twice(struct bench *bench, const char *command, const char *nothing)
{
    type(bench->client, command);
    must_send(bench->shared, command);
    cache_says(bench->shared, nothing);
    must_reply(bench->client, "");
    must_send(bench->shared, HGETALL);
}

static void a_field_that_is_there_takes_one_look(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    type(bench.client, HGET_F HMGET_FG HLEN HGETALL);
    must_send(bench.shared, HGET_F HMGET_FG HLEN HGETALL);
    cache_says(bench.shared, "$1\r\nv\r\n");
    cache_says(bench.shared, "*2\r\n$1\r\nv\r\n$-1\r\n");
    cache_says(bench.shared, ":2\r\n");
    cache_says(bench.shared, WITH_F);
    must_reply(bench.client, "$1\r\nv\r\n*2\r\n$1\r\nv\r\n$-1\r\n:2\r\n" WITH_F);
    must_send(bench.shared, "");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 4);
    bench_finish(&bench);
}

static void a_field_that_the_hash_lacks_is_nil_without_a_load(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, WITHOUT_F);
    must_reply(bench.client, NIL);
    look_twice(&bench, HMGET_FG, "*2\r\n$-1\r\n$-1\r\n");
    cache_says(bench.shared, WITHOUT_F);
    must_reply(bench.client, "*2\r\n$-1\r\n$-1\r\n");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 2);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 0);
    bench_finish(&bench);
}

/* Neither look tells anything of the hash then. */
static void what_no_such_command_answers_is_loaded(void **state)
{
    static const char *const others[] = {":1\r\n", "+OK\r\n", "+QUEUED\r\n", "*1\r\n+x\r\n"};
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        type(bench.client, HGET_F);
        must_send(bench.shared, HGET_F);
        cache_says(bench.shared, others[i]);
        load_row(&bench, "item:1", WITH_F);
        must_reply(bench.client, "$1\r\nv\r\n");
        type(bench.client, HMGET_FG);
        must_send(bench.shared, HMGET_FG);
        cache_says(bench.shared, others[i]);
        load_row(&bench, "item:1", WITH_F);
        must_reply(bench.client, "*2\r\n$1\r\nv\r\n$-1\r\n");
        look_twice(&bench, HGET_F, NIL);
        cache_says(bench.shared, others[i]);
        load_row(&bench, "item:1", WITH_F);
        must_reply(bench.client, "$1\r\nv\r\n");
    }
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 0);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 0);
    bench_finish(&bench);
}

static void a_hash_that_is_not_there_is_loaded(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, "*0\r\n");
    load_row(&bench, "item:1", WITH_F);
    assert_int_equal(bench.serving->arrived, 7); /* what is written, not the row */
    must_reply(bench.client, "$1\r\nv\r\n");
    type(bench.client, HLEN);
    cache_says(bench.shared, ":0\r\n");
    load_row(&bench, "item:1", WITH_F);
    must_reply(bench.client, ":2\r\n");
    must_send(bench.shared, HLEN);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 2);
    bench_finish(&bench);
}

/* Between the two looks somebody has filled it: the nil was of no hash at all. */
static void a_field_that_has_come_since_is_not_nil(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, WITH_F);
    load_row(&bench, "item:1", "*2\r\n$1\r\nf\r\n$3\r\nrow\r\n");
    must_reply(bench.client, "$3\r\nrow\r\n");
    look_twice(&bench, HMGET_FG, "*2\r\n$-1\r\n$-1\r\n");
    cache_says(bench.shared, WITH_F);
    load_row(&bench, "item:1", WITHOUT_F);
    must_reply(bench.client, "*2\r\n$-1\r\n$-1\r\n");
    bench_finish(&bench);
}

static void only_the_databases_word_makes_a_missing_hash_nothing(void **state)
{
    static const struct {
        enum load_outcome outcome;
        const char *reply;
    } ends[] = {{LOAD_ABSENT, NIL},
                {LOAD_BUSY, "-NESTGUARD busy"},
                {LOAD_TIMEOUT, "-NESTGUARD timeout"},
                {LOAD_DOWN, "-NESTGUARD database down"},
                {LOAD_REFUSED, "-NESTGUARD database error"},
                {LOAD_TOO_LARGE, "-NESTGUARD too large"}};
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        look_twice(&bench, HGET_F, NIL);
        cache_says(bench.shared, "*0\r\n");
        load_outcome(&bench, "item:1", ends[i].outcome);
        assert_true(span_starts(buffer_span(&bench.client->replies.out), ends[i].reply));
        buffer_clear(&bench.client->replies.out);
    }
    bench_finish(&bench);
}

static void a_second_look_that_fails_ends_in_a_load(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, "-LOADING Redis is loading\r\n");
    load_row(&bench, "item:1", WITH_F);
    must_reply(bench.client, "$1\r\nv\r\n");
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, "-WRONGTYPE Operation\r\n");
    must_reply(bench.client, "-WRONGTYPE Operation\r\n");
    bench_finish(&bench);
}

static void a_second_look_that_is_refused_says_nothing(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    cache_says(bench.shared, "-NOPERM this user has no permissions to run 'hgetall'\r\n");
    load_row(&bench, "item:1", WITH_F);
    must_reply(bench.client, "$1\r\nv\r\n");
    look_twice(&bench, HMGET_FG, "*2\r\n$-1\r\n$-1\r\n");
    cache_says(bench.shared, "-ERR unknown command 'HGETALL'\r\n");
    load_row(&bench, "item:1", WITHOUT_F);
    must_reply(bench.client, "*2\r\n$-1\r\n$-1\r\n");
    bench_finish(&bench);
}

/* Its own connection may be in a transaction by then, or in another database. */
static void the_second_look_goes_over_a_shared_connection(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    type(bench.client, "*2\r\n$5\r\nWATCH\r\n$1\r\nx\r\n");
    struct upstream *own = bench.client->upstream;
    assert_ptr_not_equal(own, bench.shared);
    cache_says(own, "+OK\r\n");
    must_reply(bench.client, "+OK\r\n");
    type(bench.client, HGET_F "*1\r\n$5\r\nMULTI\r\n");
    cache_says(own, NIL);
    must_send(bench.shared, HGETALL);
    cache_says(own, "+OK\r\n");
    must_reply(bench.client, "");
    cache_says(bench.shared, WITHOUT_F);
    load_row(&bench, "item:1", WITHOUT_F); /* what comes behind may have written it */
    must_reply(bench.client, NIL "+OK\r\n");
    bench_finish(&bench);
}

/* He may read no more than the cache lets him: over his own connection, or not at all. */
static void a_user_of_the_caches_own_looks_over_his_own_connection(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    type(bench.client, "*2\r\n$5\r\nWATCH\r\n$1\r\nx\r\n");
    struct upstream *own = bench.client->upstream;
    cache_says(own, "+OK\r\n");
    must_reply(bench.client, "+OK\r\n");
    buffer_clear(&own->out);
    bench.client->replies.no_fallback = true;
    type(bench.client, HGET_F);
    cache_says(own, NIL);
    must_send(own, HGET_F HGETALL);
    cache_says(own, WITHOUT_F);
    must_reply(bench.client, NIL);
    type(bench.client, HGET_F "*1\r\n$5\r\nMULTI\r\n");
    cache_says(own, NIL);
    cache_says(own, "+OK\r\n");
    load_row(&bench, "item:1", WITHOUT_F);
    must_reply(bench.client, NIL "+OK\r\n");
    must_send(bench.shared, "");
    bench_finish(&bench);
}

static void a_client_that_goes_meanwhile_leaves_nothing(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    look_twice(&bench, HGET_F, NIL);
    client_close(bench.client);
    turn_loop(&bench.clients.serving);
    cache_says(bench.shared, "*0\r\n");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static void a_rejected_hmget_has_a_nil_for_each_field(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*4\r\n$5\r\nHMGET\r\n$6\r\nitem:x\r\n$1\r\nf\r\n$1\r\ng\r\n");
    must_reply(bench.client, "*2\r\n$-1\r\n$-1\r\n");
    client_speak(bench.client, true);
    type(bench.client, "*3\r\n$5\r\nHMGET\r\n$6\r\nitem:x\r\n$1\r\nf\r\n");
    must_reply(bench.client, "*1\r\n_\r\n");
    type(bench.client, "*3\r\n$5\r\nHMGET\r\n$8\r\npassed:x\r\n$1\r\nf\r\n");
    must_reply(bench.client, "*1\r\n_\r\n");
    must_send(bench.shared, "");
    bench_finish(&bench);
}

static void where_rows_are_strings_hashes_are_the_caches_alone(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, HGET_F HLEN);
    cache_says(bench.shared, NIL);
    cache_says(bench.shared, ":0\r\n");
    must_send(bench.shared, HGET_F HLEN);
    must_reply(bench.client, NIL ":0\r\n");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static void a_get_loads_the_row_and_says_that_it_is_a_hash(void **state)
{
    struct bench bench;
    (void)state;
    open_hashes(&bench);
    type(bench.client, GET_ITEM_1);
    cache_says(bench.shared, NIL);
    load_row(&bench, "item:1", WITH_F);
    must_reply(bench.client,
               "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n");
    type(bench.client, GET_ITEM_1);
    cache_says(bench.shared, NIL);
    load_outcome(&bench, "item:1", LOAD_ABSENT);
    must_reply(bench.client, NIL);
    type(bench.client, "*2\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n");
    cache_says(bench.shared, "*1\r\n$-1\r\n");
    must_reply(bench.client, "*1\r\n$-1\r\n");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_that_is_there_takes_one_look),
        cmocka_unit_test(a_field_that_the_hash_lacks_is_nil_without_a_load),
        cmocka_unit_test(what_no_such_command_answers_is_loaded),
        cmocka_unit_test(a_hash_that_is_not_there_is_loaded),
        cmocka_unit_test(a_field_that_has_come_since_is_not_nil),
        cmocka_unit_test(only_the_databases_word_makes_a_missing_hash_nothing),
        cmocka_unit_test(a_second_look_that_fails_ends_in_a_load),
        cmocka_unit_test(a_second_look_that_is_refused_says_nothing),
        cmocka_unit_test(the_second_look_goes_over_a_shared_connection),
        cmocka_unit_test(a_user_of_the_caches_own_looks_over_his_own_connection),
        cmocka_unit_test(a_client_that_goes_meanwhile_leaves_nothing),
        cmocka_unit_test(a_rejected_hmget_has_a_nil_for_each_field),
        cmocka_unit_test(where_rows_are_strings_hashes_are_the_caches_alone),
        cmocka_unit_test(a_get_loads_the_row_and_says_that_it_is_a_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
