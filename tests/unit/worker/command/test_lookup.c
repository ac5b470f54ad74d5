/* Lookups of a guarded key: what is rejected, what the cache and the keeper are asked, and that a
 * failure is never a nil. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "command_bench.h"

#define MGET_THREE "*4\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n$6\r\nitem:2\r\n"

static void an_absent_key_is_rejected_without_asking_anybody(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ABSENT);
    must_reply(bench.client, NIL);
    client_speak(bench.client, true);
    type(bench.client, GET_ABSENT);
    must_reply(bench.client, "_\r\n");
    must_send(bench.shared, "");
    must_send(bench.client->upstream, "");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, lookups), 2);
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 2);
    bench_finish(&bench);
}

/* Each reading command has an answer of its own for a key that is not there. */
static void a_rejected_read_gets_its_own_commands_answer(void **state)
{
    static const char *const commands[][2] = {
        {"*2\r\n$6\r\nSTRLEN\r\n$6\r\nitem:x\r\n", ":0\r\n"},
        {"*2\r\n$3\r\nTTL\r\n$6\r\nitem:x\r\n", ":-2\r\n"},
        {"*4\r\n$8\r\nGETRANGE\r\n$6\r\nitem:x\r\n$1\r\n0\r\n$1\r\n1\r\n", "$0\r\n\r\n"}};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        type(bench.client, commands[i][0]);
        must_reply(bench.client, commands[i][1]);
    }
    must_send(bench.shared, "");
    bench_finish(&bench);
}

static void an_absent_key_may_have_a_value_of_its_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, "*2\r\n$3\r\nGET\r\n$8\r\npassed:x\r\n");
    must_reply(bench.client, "$4\r\nnope\r\n");
    type(bench.client, "*2\r\n$6\r\nSTRLEN\r\n$8\r\npassed:x\r\n"); /* takes no value */
    must_reply(bench.client, ":0\r\n");
    bench_finish(&bench);
}

static void a_hit_is_the_caches_reply_as_it_came(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1);
    must_send(bench.shared, GET_ITEM_1);
    cache_says(bench.shared, "$3\r\none\r\n");
    must_reply(bench.client, "$3\r\none\r\n");
    must_not_ask(bench.keeper);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 1);
    bench_finish(&bench);
}

static void a_miss_is_loaded_and_replies_keep_their_order(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1 GET_ABSENT GET_ITEM_2);
    must_send(bench.shared, GET_ITEM_1 GET_ITEM_2);
    cache_says(bench.shared, NIL);
    cache_says(bench.shared, "$3\r\ntwo\r\n");
    must_reply(bench.client, "");
    load_row(&bench, "item:1", "one");
    must_reply(bench.client, "$3\r\none\r\n" NIL "$3\r\ntwo\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 1);
    bench_finish(&bench);
}

/* The client's memory is looked at in the same turn then, if it is much. */
static void a_loaded_value_is_counted_when_it_is_written(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1);
    cache_says(bench.shared, NIL);
    assert_int_equal(bench.serving->arrived, 0);
    load_row(&bench, "item:1", "one");
    assert_int_equal(bench.serving->arrived, 3);
    must_reply(bench.client, "$3\r\none\r\n");
    bench_finish(&bench);
}

static void only_the_databases_word_makes_a_miss_a_nil(void **state)
{
    static const struct {
        enum load_outcome outcome;
        const char *reply;
    } ends[] = {
        {LOAD_ABSENT, NIL},
        {LOAD_BUSY, "-NESTGUARD busy"},
        {LOAD_TIMEOUT, "-NESTGUARD timeout"},
        {LOAD_DOWN, "-NESTGUARD database down"},
        {LOAD_REFUSED, "-NESTGUARD database error"},
        {LOAD_AMBIGUOUS, "-NESTGUARD ambiguous"},
    };
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        type(bench.client, GET_ITEM_1);
        cache_says(bench.shared, NIL);
        load_outcome(&bench, "item:1", ends[i].outcome);
        struct span reply = buffer_span(&bench.client->replies.out);
        assert_true(span_starts(reply, ends[i].reply));
        assert_memory_equal(reply.at + reply.length - 2, "\r\n", 2);
        buffer_clear(&bench.client->replies.out);
    }
    bench_finish(&bench);
}

static void an_application_that_loads_by_itself_gets_the_caches_nil(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_PASSED);
    cache_says(bench.shared, NIL);
    must_reply(bench.client, NIL);
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* One that is starting, or cut off, has no answer to give. */
static void a_cache_that_cannot_answer_is_as_good_as_none(void **state)
{
    static const char *const errors[] = {"-LOADING Redis is loading\r\n", "-MASTERDOWN Link\r\n",
                                         "-CLUSTERDOWN The cluster\r\n", "-BUSY Redis is busy\r\n"};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        type(bench.client, GET_ITEM_1 GET_PASSED);
        cache_says(bench.shared, errors[i]);
        cache_says(bench.shared, errors[i]);
        load_row(&bench, "item:1", "one");
        struct span reply = buffer_span(&bench.client->replies.out);
        assert_true(span_starts(reply, "$3\r\none\r\n-"));
        buffer_clear(&bench.client->replies.out);
    }
    assert_int_equal(COUNTED(&bench, ITEMS, cache_failures), 4);
    assert_int_equal(COUNTED(&bench, ITEMS, cache_misses), 0);
    bench_finish(&bench);
}

static void another_error_of_the_cache_is_the_reply(void **state)
{
    static const char error[] = "-WRONGTYPE Operation against a key\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1);
    cache_says(bench.shared, error);
    must_reply(bench.client, error);
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

static void a_lost_cache_is_read_past_or_is_an_error(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1 GET_PASSED);
    cache_is_lost(bench.shared);
    load_row(&bench, "item:1", "one");
    must_reply(bench.client, "$3\r\none\r\n-NESTGUARD cache down\r\n");
    bench_finish(&bench);
}

/* A user of the cache's own may read only what the cache lets it read. */
static void who_depends_on_the_caches_permissions_gets_no_row_past_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    bench.client->replies.no_fallback = true;
    type(bench.client, GET_ITEM_1);
    cache_is_lost(bench.shared);
    must_reply(bench.client, "-NESTGUARD cache down\r\n");
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* What comes in pieces is a hit, counted once. */
static void a_large_value_passes_in_pieces(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1);
    cache_begins(bench.shared, "$6\r\nab");
    must_reply(bench.client, "$6\r\nab");
    cache_begins(bench.shared, "cd");
    cache_says(bench.shared, "ef\r\n");
    must_reply(bench.client, "cdef\r\n");
    assert_int_equal(COUNTED(&bench, ITEMS, cache_hits), 1);
    bench_finish(&bench);
}

/* Half a value cannot become an error any more. */
static void a_value_that_breaks_off_ends_the_client(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1);
    cache_begins(bench.shared, "$6\r\nab");
    cache_is_lost(bench.shared);
    must_reply(bench.client, "$6\r\nab");
    assert_int_equal(bench.client->state, CLIENT_CLOSED);
    must_not_ask(bench.keeper);
    bench_finish(&bench);
}

/* ---- verdicts ---- */

static void nothing_is_rejected_without_permission(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    static const enum keyspace_state states[] = {KEYSPACE_LOADING, KEYSPACE_PASSING};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        use_state(&bench.clients.serving, states[i]);
        type(bench.client, GET_ABSENT);
        must_send(bench.shared, GET_ABSENT);
        cache_says(bench.shared, NIL);
        load_outcome(&bench, "item:nothe", LOAD_ABSENT);
        must_reply(bench.client, NIL);
    }
    assert_int_equal(COUNTED(&bench, ITEMS, rejected), 0);
    bench_finish(&bench);
}

static void shadow_mode_lets_pass_and_has_some_looked_up(void **state)
{
    static const char get[] = "*2\r\n$3\r\nGET\r\n$8\r\nshadow:x\r\n";
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, get);
    must_send(bench.shared, get);
    struct message *fn_check = next_message(bench.keeper, MESSAGE_FN_CHECK);
    mailbox_return(fn_check);
    hear_keeper(&bench);
    cache_says(bench.shared, "$1\r\nv\r\n");
    must_reply(bench.client, "$1\r\nv\r\n");
    assert_int_equal(COUNTED(&bench, SHADOWS, would_reject), 1);
    assert_int_equal(COUNTED(&bench, SHADOWS, rejected), 0);
    bench_finish(&bench);
}

static void exact_entries_overrule_the_filter(void **state)
{
    struct override hint = {.kind = OVERRIDE_HINT, .until = UINT64_MAX};
    struct override tombstone = {.kind = OVERRIDE_TOMBSTONE, .until = UINT64_MAX};
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    overrides_set(&bench.serving->overrides, key_make(ITEMS, span_of("item:nothe")), hint);
    overrides_set(&bench.serving->overrides, key_make(ITEMS, span_of("item:1")), tombstone);
    type(bench.client, GET_ABSENT GET_ITEM_1);
    must_send(bench.shared, GET_ABSENT);
    cache_says(bench.shared, "$1\r\nv\r\n");
    must_reply(bench.client, "$1\r\nv\r\n" NIL);
    bench_finish(&bench);
}

/* ---- clients that go ---- */

static void an_answer_for_a_client_that_went_goes_nowhere(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, "");
    type(bench.client, GET_ITEM_1 MGET_THREE);
    cache_says(bench.shared, NIL);
    struct load_request *load = next_load(bench.keeper, "item:1");
    client_close(bench.client);
    must_reply(bench.client, "");
    return_row(load, "one");
    hear_keeper(&bench);
    cache_says(bench.shared, "*3\r\n" NIL NIL NIL);
    must_not_ask(bench.keeper); /* nobody wants the rows of the others any more */
    assert_int_equal(bench.serving->free_slot_count, 2);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_key_is_rejected_without_asking_anybody),
        cmocka_unit_test(a_rejected_read_gets_its_own_commands_answer),
        cmocka_unit_test(an_absent_key_may_have_a_value_of_its_own),
        cmocka_unit_test(a_hit_is_the_caches_reply_as_it_came),
        cmocka_unit_test(a_miss_is_loaded_and_replies_keep_their_order),
        cmocka_unit_test(a_loaded_value_is_counted_when_it_is_written),
        cmocka_unit_test(only_the_databases_word_makes_a_miss_a_nil),
        cmocka_unit_test(an_application_that_loads_by_itself_gets_the_caches_nil),
        cmocka_unit_test(a_cache_that_cannot_answer_is_as_good_as_none),
        cmocka_unit_test(another_error_of_the_cache_is_the_reply),
        cmocka_unit_test(a_lost_cache_is_read_past_or_is_an_error),
        cmocka_unit_test(who_depends_on_the_caches_permissions_gets_no_row_past_it),
        cmocka_unit_test(a_large_value_passes_in_pieces),
        cmocka_unit_test(a_value_that_breaks_off_ends_the_client),
        cmocka_unit_test(nothing_is_rejected_without_permission),
        cmocka_unit_test(shadow_mode_lets_pass_and_has_some_looked_up),
        cmocka_unit_test(exact_entries_overrule_the_filter),
        cmocka_unit_test(an_answer_for_a_client_that_went_goes_nowhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
