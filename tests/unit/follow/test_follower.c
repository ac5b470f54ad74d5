/* The log of transactions that come whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower_bench.h"

/* Commits, and begins another. */
static void commit_must_tell(struct bench *bench, const char *what)
{
    commit(1000);
    must_hear(bench, what);
    begin();
}

static void an_insert_is_known_before_its_commit_and_told_by_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_true(has(&bench, OTHERS, "other:one"));
    assert_int_equal(bench.reached, 0);
    must_hear(&bench, "");
    commit(1000);
    must_hear(&bench, "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    assert_int_equal(bench.reached, 1000);
    assert_int_equal(follower_counts(bench.follower).transactions, 1);
    assert_int_equal(follower_counts(bench.follower).changes, 1);
    bench_finish(&bench);
}

static void a_delete_counts_from_the_commit_on(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    must_hear(&bench, "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    begin();
    delete_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    commit(2000);
    must_hear(&bench, "changed item:1, changed other:one, ");
    vouch(&bench);
    assert_false(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, OTHERS, "other:one"));
    bench_finish(&bench);
}

/* Half of what the transaction did may be all that was told. */
static void a_deleted_key_is_told_at_once_and_goes_when_its_transaction_was_seen(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    assert_int_equal(bench.asked, 0);
    bench.heard[0] = '\0';
    begin();
    delete_item("1", "one");
    commit(2000);
    must_hear(&bench, "changed item:1, changed other:one, ");
    assert_int_equal(bench.reached, 2000);
    assert_int_equal(bench.asked, 1);
    assert_int_equal(removals_held(&bench), 2);
    assert_true(departing_has(&bench.generation->departing, ITEMS, hash_of(&bench, "item:1")));
    assert_int_equal(follower_removals(bench.follower, ITEMS), 1);
    for (unsigned turn = 0; turn < 3; turn++) {
        follower_vouch(bench.follower, turn < 2 ? "5:9:7" : "5:7:"); /* XID is not over there */
        uv_run(&bench.loop, UV_RUN_NOWAIT);
        assert_true(has(&bench, ITEMS, "item:1") && has(&bench, OTHERS, "other:one"));
        assert_int_equal(bench.asked, 2 + turn);
    }
    follower_vouch(bench.follower, "5:9:8");
    assert_true(has(&bench, ITEMS, "item:1")); /* nothing happens within the call */
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_int_equal(removals_held(&bench), 0);
    assert_false(has(&bench, ITEMS, "item:1") || has(&bench, OTHERS, "other:one"));
    assert_false(departing_any(&bench.generation->departing));
    assert_int_equal(bench.asked, 4);
    bench_finish(&bench);
}

static void a_key_that_comes_back_before_it_went_stays(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    for (unsigned i = 0; i < 3; i++) {
        commit(1000 + i);
        begin();
        delete_item("1", "one");
        commit(2000 + i);
        begin();
        insert_item("1", "one");
    }
    commit(3000);
    assert_int_equal(keys_in(&bench, ITEMS), 4);
    vouch(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 1);
    assert_true(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

/* Who catches up has asked before. */
static void what_was_over_at_the_last_probe_goes_at_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    vouch(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    begin();
    delete_item("1", "one");
    commit(2000);
    assert_int_equal(bench.asked, 0);
    assert_false(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

static void where_held_keys_take_the_places_the_stream_waits(void **state)
{
    struct bench bench;
    char id[16];
    unsigned i = 0;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("0", "0");
    commit(1000);
    while (!stream.paused) { /* one row at a time */
        begin();
        snprintf(id, sizeof id, "%u", i);
        delete_item(id, id);
        snprintf(id, sizeof id, "%u", ++i);
        insert_item(id, id);
        commit(1000 + i);
        assert_true(i < 1000);
    }
    assert_true(bench.crowded);
    assert_int_equal(bench.reached, 1000 + i);
    assert_int_equal(keys_in(&bench, ITEMS), i + 1);
    run_until_released(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 1);
    assert_string_equal(bench.fault, "");
    bench_finish(&bench);
}

/* Applied in order it would be absent for a moment, though it always has a row. */
static void a_row_deleted_and_inserted_again_is_never_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    begin();
    delete_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    insert_item("1", "one");
    assert_true(has(&bench, ITEMS, "item:1"));
    commit(2000);
    assert_true(has(&bench, ITEMS, "item:1"));
    begin();
    delete_item("1", "one");
    commit(3000);
    vouch(&bench);
    assert_false(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

static void an_update_moves_exactly_the_keys_that_changed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit_must_tell(&bench,
                     "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    must_take(
        compose("cwchtttchttt", 'U', ITEM_TABLE, 'O', 3, "x", "1", "one", 'N', 3, "y", "2", "one"));
    commit_must_tell(&bench,
                     "changed item:2, inserted item:2, changed item:1, changed other:one, ");
    commit(1000);
    vouch(&bench);
    assert_false(has(&bench, ITEMS, "item:1"));
    assert_true(has(&bench, ITEMS, "item:2"));
    assert_true(has(&bench, OTHERS, "other:one"));
    bench_finish(&bench);
}

static void an_update_of_other_columns_only_purges(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit_must_tell(&bench,
                     "changed item:1, inserted item:1, changed other:one, inserted other:one, ");
    must_take(compose("cwchttt", 'U', ITEM_TABLE, 'N', 3, "y", "1", "one"));
    commit_must_tell(&bench, "changed item:1, changed other:one, ");
    must_take(
        compose("cwchtttchutt", 'U', ITEM_TABLE, 'O', 3, "x", "1", "one", 'N', 3, "1", "one"));
    commit_must_tell(&bench, "changed item:1, changed other:one, ");
    commit(1000);
    assert_true(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

/* An untouched value that is stored out of line is not sent: the old tuple has it, or nobody. */
static void a_key_column_that_is_not_sent_is_taken_from_the_old_row(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    insert_item("1", "long");
    commit_must_tell(&bench,
                     "changed item:1, inserted item:1, changed other:long, inserted other:long, ");
    must_take(compose("cwchtttchttu", 'U', ITEM_TABLE, 'O', 3, "x", "1", "long", 'N', 3, "y", "2"));
    commit_must_tell(&bench,
                     "changed item:2, inserted item:2, changed item:1, changed other:long, ");
    must_take(compose("cwchttu", 'U', ITEM_TABLE, 'N', 3, "y", "2"));
    commit_must_tell(&bench, "changed item:2, unknown in others, ");
    assert_int_equal(feed(compose("cwchttu", 'I', ITEM_TABLE, 'N', 3, "y", "3")), -EPROTO);
    bench_finish(&bench);
}

static void null_in_a_key_column_means_no_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    must_take(compose("cwchttn", 'I', ITEM_TABLE, 'N', 3, "x", "1"));
    commit_must_tell(&bench, "changed item:1, inserted item:1, ");
    must_take(
        compose("cwchttnchttt", 'U', ITEM_TABLE, 'O', 3, "x", "1", 'N', 3, "x", "1", "named"));
    commit_must_tell(&bench, "changed item:1, changed other:named, inserted other:named, ");
    must_take(
        compose("cwchtttchttn", 'U', ITEM_TABLE, 'O', 3, "x", "1", "named", 'N', 3, "x", "1"));
    commit_must_tell(&bench, "changed item:1, changed other:named, ");
    commit(1000);
    vouch(&bench);
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, OTHERS, "other:named"));
    bench_finish(&bench);
}

/* What is no part of the identity is NULL in its tuple, whatever the row had. */
static void null_in_the_identity_s_tuple_tells_no_key(void **state)
{
    static const char kinds[] = {'D', 'U'};
    (void)state;
    for (size_t i = 0; i < sizeof kinds; i++) {
        struct bench bench;
        bench_init(&bench);
        begin();
        describe_orders();
        must_take(compose("cwchtt", 'I', ORDER_TABLE, 'N', 2, "7", "bob"));
        assert_int_equal(feed(kinds[i] == 'D' ? compose("cwchtn", 'D', ORDER_TABLE, 'K', 2, "7")
                                              : compose("cwchtnchtt", 'U', ORDER_TABLE, 'K', 2, "7",
                                                        'N', 2, "8", "bob")),
                         -EPROTO);
        assert_true(has(&bench, ORDERS, "order:bob:7"));
        bench_finish(&bench);
    }
}

static void an_untouched_column_is_not_taken_from_an_identity_without_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_orders();
    assert_int_equal(feed(compose("cwchtnchtu", 'U', ORDER_TABLE, 'K', 2, "7", 'N', 2, "8")),
                     -EPROTO);
    bench_finish(&bench);
}

static void columns_are_found_by_name_also_after_the_table_was_altered(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_orders();
    must_take(compose("cwchtt", 'I', ORDER_TABLE, 'N', 2, "7", "bob"));
    commit_must_tell(&bench, "changed order:bob:7, inserted order:bob:7, ");
    must_take(compose("cwsschcswwcswwcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 3, 0, "new",
                      25, -1, 1, "customer", 25, -1, 1, "number", 20, -1));
    must_take(compose("cwchttt", 'I', ORDER_TABLE, 'N', 3, "x", "eve", "8"));
    commit_must_tell(&bench, "changed order:eve:8, inserted order:eve:8, ");
    assert_int_equal(feed(compose("cwsschcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 1, 1,
                                  "customer", 25, -1)),
                     -EPROTO);
    bench_finish(&bench);
}

/* Nothing but the log tells of an identity that is what it was again. */
static void an_identity_that_is_not_that_of_the_build_is_a_fault(void **state)
{
    static const char others[] = {'f', 'n', 'i'};
    (void)state;
    for (size_t i = 0; i < sizeof others; i++) {
        struct bench bench;
        bench_init(&bench);
        begin();
        describe_orders();
        assert_int_equal(feed(compose("cwsschcswwcsww", 'R', ORDER_TABLE, "public", "orders",
                                      others[i], 2, 1, "number", 20, -1, 1, "customer", 25, -1)),
                         -EPROTO);
        bench_finish(&bench);
    }
}

static void truncation_names_every_keyspace_of_the_table(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    must_take(compose("cwcww", 'T', 2, 1, 999, ITEM_TABLE));
    commit_must_tell(&bench, "truncated items, truncated others, ");
    commit(1000);
    bench_finish(&bench);
}

static void other_tables_and_messages_leave_no_trace(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    must_take(compose("cwsschcsww", 'R', 555, "public", "else", 'd', 1, 1, "id", 20, -1));
    must_take(compose("cwcht", 'I', 555, 'N', 1, "1"));
    must_take(compose("cwss", 'Y', 16390, "public", "colour"));
    must_take(compose("cqs", 'O', UINT64_C(5), "elsewhere"));
    must_take(compose("ccqswc", 'M', 1, UINT64_C(77), "guard", 1, 'x'));
    commit(1000);
    must_hear(&bench, "");
    assert_int_equal(bench.reached, 1000);
    bench_finish(&bench);
}

static void positions_within_a_transaction_promise_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    stream.events->position(stream.arg, 500);
    assert_int_equal(bench.reached, 500);
    begin();
    stream.events->position(stream.arg, 900);
    assert_int_equal(bench.reached, 500);
    commit(1000);
    stream.events->position(stream.arg, 1100);
    assert_int_equal(bench.reached, 1100);
    bench_finish(&bench);
}

static void what_cannot_be_applied_exactly_is_a_fault(void **state)
{
    struct bench bench;
    struct pg_error lost = {.text = "gone"};
    (void)state;
    bench_init(&bench);
    begin();
    assert_int_equal(feed(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "n")), -EPROTO);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench.fault, "description"));
    bench_finish(&bench);

    bench_init(&bench);
    begin();
    describe_items();
    delete_item("1", "never there");
    commit(1000);
    follower_vouch(bench.follower, "8:8:");
    assert_string_equal(bench.fault, ""); /* from the loop only */
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_non_null(strstr(bench.fault, "not in its filter"));
    bench_finish(&bench);

    bench_init(&bench);
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench.fault, "gone"));
    bench_finish(&bench);
}

static void a_full_filter_is_a_fault_and_loses_nothing(void **state)
{
    struct bench bench;
    char id[16];
    int status = 0;
    unsigned i = 0;
    (void)state;
    bench_init(&bench);
    begin();
    describe_items();
    for (; i < 10000 && !status; i++) {
        snprintf(id, sizeof id, "%u", i);
        status = feed(compose("cwchttn", 'I', ITEM_TABLE, 'N', 3, "x", id));
    }
    assert_int_equal(status, -EPROTO);
    assert_true(i > 1000);
    for (unsigned k = 0; k + 1 < i; k++) {
        char key[24];
        snprintf(key, sizeof key, "item:%u", k);
        assert_true(has(&bench, ITEMS, key));
    }
    bench_finish(&bench);
}

static void after_its_end_a_follower_is_silent(void **state)
{
    struct bench bench;
    struct pg_error lost = {.text = "gone"};
    (void)state;
    bench_init(&bench);
    follower_confirm(bench.follower, 77);
    assert_int_equal(stream.confirmed, 77);
    follower_close(bench.follower);
    must_take(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "n"));
    stream.events->position(stream.arg, 900);
    stream.events->lost(stream.arg, &lost);
    must_hear(&bench, "");
    assert_int_equal(bench.reached, 0);
    assert_string_equal(bench.fault, "");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_insert_is_known_before_its_commit_and_told_by_it),
        cmocka_unit_test(a_delete_counts_from_the_commit_on),
        cmocka_unit_test(a_deleted_key_is_told_at_once_and_goes_when_its_transaction_was_seen),
        cmocka_unit_test(a_key_that_comes_back_before_it_went_stays),
        cmocka_unit_test(what_was_over_at_the_last_probe_goes_at_once),
        cmocka_unit_test(where_held_keys_take_the_places_the_stream_waits),
        cmocka_unit_test(a_row_deleted_and_inserted_again_is_never_absent),
        cmocka_unit_test(an_update_moves_exactly_the_keys_that_changed),
        cmocka_unit_test(an_update_of_other_columns_only_purges),
        cmocka_unit_test(a_key_column_that_is_not_sent_is_taken_from_the_old_row),
        cmocka_unit_test(null_in_a_key_column_means_no_key),
        cmocka_unit_test(null_in_the_identity_s_tuple_tells_no_key),
        cmocka_unit_test(an_untouched_column_is_not_taken_from_an_identity_without_it),
        cmocka_unit_test(columns_are_found_by_name_also_after_the_table_was_altered),
        cmocka_unit_test(an_identity_that_is_not_that_of_the_build_is_a_fault),
        cmocka_unit_test(truncation_names_every_keyspace_of_the_table),
        cmocka_unit_test(other_tables_and_messages_leave_no_trace),
        cmocka_unit_test(positions_within_a_transaction_promise_nothing),
        cmocka_unit_test(what_cannot_be_applied_exactly_is_a_fault),
        cmocka_unit_test(a_full_filter_is_a_fault_and_loses_nothing),
        cmocka_unit_test(after_its_end_a_follower_is_silent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
