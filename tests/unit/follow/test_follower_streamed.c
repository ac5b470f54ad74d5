/* The log of transactions in progress, and of large ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "follower_bench.h"

#include <signal.h>
#include <sys/resource.h>

#define ONE "changed item:1, inserted item:1, changed other:one, inserted other:one, "
#define TWO "changed item:2, inserted item:2, changed other:two, inserted other:two, "

/* One row that is committed, so that there is something to delete. */
static void bench_init_with_one(struct bench *bench)
{
    bench_init(bench);
    begin();
    describe_items();
    insert_item("1", "one");
    commit(1000);
    must_hear(bench, ONE);
}

static void must_end_with(struct bench *bench, const char *why)
{
    struct pg_error lost = {.text = "gone"};
    stream.events->lost(stream.arg, &lost);
    assert_non_null(strstr(bench->fault, why));
    bench_finish(bench);
}

static void an_insert_in_progress_is_known_but_only_told_by_its_commit(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    stream_start(8, true);
    describe_items();
    insert_item("1", "one");
    stream_stop();
    assert_true(has(&bench, ITEMS, "item:1"));
    must_hear(&bench, "");
    stream.events->position(stream.arg, 500);
    assert_int_equal(bench.reached, 500);
    stream_start(8, false);
    insert_item("2", "two");
    stream_stop();
    must_hear(&bench, "");
    stream_commit(8, 1000);
    must_hear(&bench, ONE TWO);
    assert_int_equal(bench.reached, 1000);
    assert_int_equal(follower_counts(bench.follower).transactions, 1);
    assert_int_equal(follower_counts(bench.follower).last_commit_lsn, 990);
    assert_int_equal(keys_in(&bench, ITEMS), 2);
    bench_finish(&bench);
}

static void a_delete_in_progress_counts_from_its_commit_on(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    describe_items();
    delete_item("1", "one");
    stream_stop();
    assert_true(has(&bench, ITEMS, "item:1"));
    must_hear(&bench, "");
    stream_commit(8, 2000);
    must_hear(&bench, "changed item:1, changed other:one, ");
    assert_true(has(&bench, ITEMS, "item:1") && has(&bench, OTHERS, "other:one"));
    vouch(&bench);
    assert_false(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, OTHERS, "other:one"));
    bench_finish(&bench);
}

static void an_abort_leaves_no_trace(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    describe_items();
    delete_item("1", "one");
    insert_item("1", "one");
    insert_item("2", "two");
    must_take(compose("cwchttt", 'U', ITEM_TABLE, 'N', 3, "y", "1", "one"));
    must_take(compose("cwcw", 'T', 1, 0, ITEM_TABLE));
    stream_stop();
    assert_true(has(&bench, ITEMS, "item:2"));
    stream_abort(8, 8);
    must_hear(&bench, "");
    assert_int_equal(bench.reached, 1000);
    assert_int_equal(follower_counts(bench.follower).transactions, 1);
    assert_false(has(&bench, ITEMS, "item:2"));
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_int_equal(keys_in(&bench, ITEMS), 1);
    assert_int_equal(keys_in(&bench, OTHERS), 1);
    stream_start(8, true); /* nothing of it is known any more */
    stream_stop();
    bench_finish(&bench);
}

static void a_subtransaction_that_is_rolled_back_takes_only_its_own_away(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    describe_items();
    insert_item("2", "two");
    stream.writer = 9;
    delete_item("1", "one");
    insert_item("3", "three");
    stream.writer = 10; /* within 9 */
    insert_item("4", "four");
    stream_stop();
    stream_abort(8, 10);
    stream_abort(8, 9);
    stream_start(8, false);
    stream.writer = 11;
    insert_item("5", "five");
    stream_stop();
    stream_commit(8, 2000);
    must_hear(&bench,
              TWO "changed item:5, inserted item:5, changed other:five, inserted other:five, ");
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, ITEMS, "item:3"));
    assert_false(has(&bench, ITEMS, "item:4"));
    assert_int_equal(keys_in(&bench, ITEMS), 3);
    assert_int_equal(keys_in(&bench, OTHERS), 3);
    bench_finish(&bench);
}

static void streamed_transactions_and_whole_ones_come_between_each_other(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    describe_items();
    insert_item("2", "two");
    stream_stop();
    stream_start(9, true);
    describe_items();
    insert_item("3", "three");
    stream_stop();
    begin();
    delete_item("1", "one");
    commit(2000);
    must_hear(&bench, "changed item:1, changed other:one, ");
    stream_start(8, false);
    insert_item("1", "one");
    stream_stop();
    stream_abort(9, 9);
    assert_false(has(&bench, ITEMS, "item:3"));
    stream_commit(8, 3000);
    must_hear(&bench, TWO ONE);
    assert_int_equal(bench.reached, 3000);
    vouch(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 2);
    bench_finish(&bench);
}

/* Whoever looks at the moment of each event finds the key. */
static struct bench *watched;

static void must_be_there(void *arg, int keyspace, struct span key)
{
    (void)arg, (void)key;
    if (keyspace == ITEMS)
        assert_true(has(watched, ITEMS, "item:1"));
}

static void a_row_replaced_in_progress_is_never_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    describe_items();
    for (unsigned i = 0; i < 2; i++) {
        delete_item("1", "one");
        assert_true(has(&bench, ITEMS, "item:1"));
        insert_item("1", "one");
    }
    insert_item("2", "two");
    delete_item("2", "two");
    stream_stop();
    watched = &bench;
    bench.watcher = must_be_there;
    stream_commit(8, 2000);
    assert_true(bench.events > 8);
    vouch(&bench);
    assert_true(has(&bench, ITEMS, "item:1"));
    assert_false(has(&bench, ITEMS, "item:2"));
    assert_int_equal(keys_in(&bench, ITEMS), 1);
    bench_finish(&bench);
}

static void a_truncation_in_progress_is_told_by_its_commit(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    must_take(compose("cwcww", 'T', 2, 1, 999, ITEM_TABLE));
    describe_items();
    insert_item("2", "two");
    stream_stop();
    must_hear(&bench, "");
    stream_commit(8, 2000);
    must_hear(&bench, "truncated items, truncated others, " TWO);
    bench_finish(&bench);
}

/* orders(new, customer, number), as the transaction in progress has made it. */
static void describe_altered_orders(void)
{
    must_take(compose("cwsschcswwcswwcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 3, 0, "new",
                      25, -1, 1, "customer", 25, -1, 1, "number", 20, -1));
}

static void insert_order(const char *number, const char *customer)
{
    must_take(compose("cwchtt", 'I', ORDER_TABLE, 'N', 2, number, customer));
}

static void insert_altered_order(const char *customer, const char *number)
{
    must_take(compose("cwchttt", 'I', ORDER_TABLE, 'N', 3, "x", customer, number));
}

static void a_table_altered_in_progress_is_so_for_all_from_the_commit_on(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_orders();
    insert_order("1", "ann");
    commit(1000);
    stream_start(8, true);
    describe_orders();
    insert_order("2", "bob");
    describe_altered_orders();
    insert_altered_order("eve", "3");
    stream_stop();
    begin();
    insert_order("4", "ann");
    commit(2000);
    stream_commit(8, 3000);
    begin();
    insert_altered_order("eve", "5");
    commit(4000);
    must_hear(&bench, "changed order:ann:1, inserted order:ann:1, "
                      "changed order:ann:4, inserted order:ann:4, "
                      "changed order:bob:2, inserted order:bob:2, "
                      "changed order:eve:3, inserted order:eve:3, "
                      "changed order:eve:5, inserted order:eve:5, ");
    bench_finish(&bench);
}

static void what_an_abort_has_described_counts_for_nobody(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    begin();
    describe_orders();
    commit(1000);
    stream_start(8, true);
    describe_altered_orders();
    insert_altered_order("eve", "3");
    stream_stop();
    stream_abort(8, 8);
    begin();
    insert_order("4", "ann");
    commit(2000);
    must_hear(&bench, "changed order:ann:4, inserted order:ann:4, ");
    bench_finish(&bench);
}

static void a_description_that_came_later_outlasts_a_commit(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    stream_start(8, true);
    describe_orders();
    insert_order("2", "bob");
    stream_stop();
    begin();
    describe_altered_orders();
    commit(1000);
    stream_commit(8, 2000);
    begin();
    insert_altered_order("eve", "3");
    commit(3000);
    must_hear(&bench, "changed order:bob:2, inserted order:bob:2, "
                      "changed order:eve:3, inserted order:eve:3, ");
    bench_finish(&bench);
}

static void each_streamed_transaction_needs_its_own_descriptions(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with_one(&bench);
    stream_start(8, true);
    assert_int_equal(feed(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "n")), -EPROTO);
    must_end_with(&bench, "description");
}

static void parts_out_of_place_are_a_fault(void **state)
{
    struct bench bench;
    const struct log_message parts[] = {
        compose("cwc", 'S', 8, 0),                                           /* not begun */
        compose("cwcqqq", 'c', 8, 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)), /* unknown */
        compose("cww", 'A', 8, 8),                                           /* unknown */
        compose("ccqqq", 'C', 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)),     /* no Begin */
        compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", "1", "one"),        /* of nobody */
        compose("cwcw", 'T', 1, 0, ITEM_TABLE)};
    const struct log_message within[] = {compose("cwc", 'S', 8, 1), compose("cww", 'A', 7, 8),
                                         compose("cqqw", 'B', UINT64_C(9), UINT64_C(1), 8)};
    (void)state;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bench_init(&bench);
        assert_int_equal(feed(parts[i]), -EPROTO);
        must_end_with(&bench, "out of place");
    }
    for (size_t i = 0; i < sizeof within / sizeof within[0]; i++) {
        bench_init(&bench);
        begin();
        assert_int_equal(feed(within[i]), -EPROTO);
        must_end_with(&bench, "out of place");
    }
    bench_init(&bench);
    stream_start(8, true);
    stream_stop();
    assert_int_equal(feed(compose("cwc", 'S', 8, 1)), -EPROTO); /* begun twice */
    must_end_with(&bench, "out of place");
}

/* ---- large ones ---- */

enum { MANY = 60000 }; /* more than are kept in memory, and more than one slice */

static void bench_init_large(struct bench *bench)
{
    bench_init_with(bench, 2 * MANY);
    bench->heard[0] = '\0';
}

static void for_many(void (*each)(const char *id, const char *name))
{
    char id[16];
    for (unsigned i = 1; i <= MANY; i++) {
        snprintf(id, sizeof id, "%u", i);
        each(id, id);
    }
}

static void stream_many(uint32_t xid, void (*each)(const char *id, const char *name))
{
    stream_start(xid, true);
    describe_items();
    for_many(each);
    stream_stop();
}

static void a_large_commit_is_carried_out_in_slices_while_the_stream_waits(void **state)
{
    struct bench bench;
    unsigned turns = 0;
    (void)state;
    bench_init_large(&bench);
    stream_many(8, insert_item);
    assert_int_equal(keys_in(&bench, ITEMS), MANY);
    stream_commit(8, 2000);
    for (; stream.paused; turns++) {
        assert_int_equal(bench.reached, 0);
        uv_run(&bench.loop, UV_RUN_NOWAIT);
    }
    assert_true(turns > 1);
    assert_int_equal(bench.reached, 2000);
    assert_int_equal(bench.events, 4 * MANY);
    stream_many(9, delete_item);
    assert_int_equal(keys_in(&bench, ITEMS), MANY);
    stream_commit(9, 3000);
    run_until_released(&bench);
    assert_int_equal(bench.reached, 3000);
    assert_int_equal(keys_in(&bench, ITEMS), MANY);
    follower_vouch(bench.follower, "10:10:");
    for (turns = 0; removals_held(&bench); turns++)
        uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_true(turns > 1);
    assert_int_equal(keys_in(&bench, ITEMS), 0);
    assert_int_equal(keys_in(&bench, OTHERS), 0);
    bench_finish(&bench);
}

static void a_large_whole_transaction_goes_the_same_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_large(&bench);
    begin();
    describe_items();
    for_many(insert_item);
    commit(1000);
    assert_true(stream.paused);
    run_until_released(&bench);
    begin();
    for_many(delete_item);
    assert_int_equal(keys_in(&bench, ITEMS), MANY);
    commit(2000);
    run_until_released(&bench);
    assert_int_equal(bench.reached, 2000);
    vouch(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 0);
    begin(); /* nothing of them is left */
    insert_item("1", "one");
    bench.heard[0] = '\0';
    commit(3000);
    must_hear(&bench, ONE);
    bench_finish(&bench);
}

static void a_large_abort_is_taken_back_in_slices(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_large(&bench);
    stream_many(8, insert_item);
    stream_abort(8, 8);
    assert_true(stream.paused);
    run_until_released(&bench);
    assert_int_equal(bench.events, 0);
    assert_int_equal(bench.reached, 0);
    assert_int_equal(keys_in(&bench, ITEMS), 0);
    assert_int_equal(keys_in(&bench, OTHERS), 0);
    bench_finish(&bench);
}

/* ---- a filter without room ---- */

/* Until the transaction ends, others' keys must find places. */
static void one_in_progress_leaves_room_for_others(void **state)
{
    struct bench bench;
    char id[16];
    (void)state;
    bench_init_with(&bench, 1000);
    stream_start(8, true);
    describe_items();
    for (unsigned i = 1; i <= 800; i++) {
        snprintf(id, sizeof id, "%u", i);
        insert_item(id, id);
    }
    stream_stop();
    assert_int_equal(keys_in(&bench, ITEMS), 500);
    stream_start(8, false);
    stream.writer = 9;
    for (unsigned i = 801; i <= 1600; i++) {
        snprintf(id, sizeof id, "%u", i);
        insert_item(id, id);
    }
    stream_stop();
    assert_int_equal(keys_in(&bench, ITEMS), 750);
    stream_abort(8, 9);
    begin();
    describe_items();
    insert_item("one", "one");
    commit(1000);
    assert_int_equal(keys_in(&bench, ITEMS), 751);
    assert_false(has(&bench, ITEMS, "item:800"));
    stream_commit(8, 2000);
    run_until_released(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 801);
    assert_int_equal(keys_in(&bench, OTHERS), 801);
    assert_true(has(&bench, ITEMS, "item:800"));
    assert_int_equal(bench.events, 4 * 801);
    bench_finish(&bench);
}

static void a_row_replaced_without_room_is_never_absent(void **state)
{
    struct bench bench;
    char id[16];
    (void)state;
    bench_init_with(&bench, 1000);
    begin();
    describe_items();
    insert_item("1", "one");
    for (unsigned i = 2; i <= 1000; i++) {
        snprintf(id, sizeof id, "%u", i);
        insert_item(id, id);
    }
    commit(1000);
    run_until_released(&bench);
    stream_start(8, true);
    describe_items();
    delete_item("1", "one");
    insert_item("1", "one");
    stream_stop();
    assert_int_equal(keys_in(&bench, ITEMS), 1000);
    watched = &bench;
    bench.watcher = must_be_there;
    stream_commit(8, 2000);
    assert_int_equal(bench.reached, 2000);
    run_until_released(&bench);
    assert_int_equal(keys_in(&bench, ITEMS), 1000);
    assert_true(has(&bench, ITEMS, "item:1"));
    bench_finish(&bench);
}

static void a_large_one_without_room_is_added_in_slices(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_with(&bench, MANY);
    stream_many(8, insert_item);
    assert_int_equal(keys_in(&bench, ITEMS), MANY / 2);
    stream_commit(8, 1000);
    assert_true(stream.paused);
    run_until_released(&bench);
    assert_int_equal(bench.reached, 1000);
    assert_int_equal(keys_in(&bench, ITEMS), MANY);
    bench_finish(&bench);
}

static void one_that_never_finds_room_is_a_fault_at_its_commit(void **state)
{
    struct bench bench;
    char id[16];
    (void)state;
    bench_init_with(&bench, 1000);
    stream_start(8, true);
    describe_items();
    for (unsigned i = 1; i <= 3000; i++) {
        snprintf(id, sizeof id, "%u", i);
        insert_item(id, id);
    }
    stream_stop();
    feed(compose("cwcqqq", 'c', 8, 0, UINT64_C(5), UINT64_C(6), UINT64_C(7)));
    for (unsigned turns = 0; turns < 1000 && !bench.fault[0]; turns++)
        uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_int_equal(bench.events, 0);
    assert_int_equal(bench.reached, 0);
    must_end_with(&bench, "full");
}

/* ---- who is told ---- */

static void close_follower(void *arg, int keyspace, struct span key)
{
    struct bench *bench = arg;
    (void)keyspace, (void)key;
    follower_close(bench->follower);
}

static void a_follower_may_be_closed_by_what_it_tells(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench);
    bench.watcher = close_follower;
    stream_start(8, true);
    describe_items();
    insert_item("1", "one");
    stream_stop();
    stream_commit(8, 1000);
    must_hear(&bench, "changed item:1, inserted item:1, ");
    assert_int_equal(bench.reached, 0);
    bench_finish(&bench);
}

static void a_follower_may_be_closed_between_slices(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_large(&bench);
    stream_many(8, insert_item);
    stream_many(9, insert_item);
    stream_commit(8, 1000);
    assert_true(stream.paused);
    follower_close(bench.follower);
    uint64_t told = bench.events;
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    assert_int_equal(bench.events, told);
    bench_finish(&bench);
}

/* ---- the temporary file ---- */

static void without_a_place_for_a_file_a_large_transaction_is_a_fault(void **state)
{
    struct bench bench;
    char id[16];
    int status = 0;
    (void)state;
    bench_init_large(&bench);
    setenv("TMPDIR", "/nowhere", 1);
    stream_start(8, true);
    describe_items();
    for (unsigned i = 1; i <= MANY && !status; i++) {
        snprintf(id, sizeof id, "%u", i);
        status = feed(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", id, id));
    }
    unsetenv("TMPDIR");
    assert_int_equal(status, -EPROTO);
    must_end_with(&bench, "temporary file: No such file");
}

static void a_file_that_cannot_grow_is_a_fault(void **state)
{
    struct bench bench;
    struct rlimit before, limit;
    char id[16];
    int status = 0;
    (void)state;
    bench_init_large(&bench);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 2560 * 1024;
    setrlimit(RLIMIT_FSIZE, &limit);
    stream_start(8, true);
    describe_items();
    for (unsigned i = 1; i <= MANY && !status; i++) {
        snprintf(id, sizeof id, "%u", i);
        status = feed(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", id, id));
    }
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(status, -EPROTO);
    must_end_with(&bench, "temporary file: File too large");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_insert_in_progress_is_known_but_only_told_by_its_commit),
        cmocka_unit_test(a_delete_in_progress_counts_from_its_commit_on),
        cmocka_unit_test(an_abort_leaves_no_trace),
        cmocka_unit_test(a_subtransaction_that_is_rolled_back_takes_only_its_own_away),
        cmocka_unit_test(streamed_transactions_and_whole_ones_come_between_each_other),
        cmocka_unit_test(a_row_replaced_in_progress_is_never_absent),
        cmocka_unit_test(a_truncation_in_progress_is_told_by_its_commit),
        cmocka_unit_test(a_table_altered_in_progress_is_so_for_all_from_the_commit_on),
        cmocka_unit_test(what_an_abort_has_described_counts_for_nobody),
        cmocka_unit_test(a_description_that_came_later_outlasts_a_commit),
        cmocka_unit_test(each_streamed_transaction_needs_its_own_descriptions),
        cmocka_unit_test(parts_out_of_place_are_a_fault),
        cmocka_unit_test(a_large_commit_is_carried_out_in_slices_while_the_stream_waits),
        cmocka_unit_test(a_large_whole_transaction_goes_the_same_way),
        cmocka_unit_test(a_large_abort_is_taken_back_in_slices),
        cmocka_unit_test(one_in_progress_leaves_room_for_others),
        cmocka_unit_test(a_row_replaced_without_room_is_never_absent),
        cmocka_unit_test(a_large_one_without_room_is_added_in_slices),
        cmocka_unit_test(one_that_never_finds_room_is_a_fault_at_its_commit),
        cmocka_unit_test(a_follower_may_be_closed_by_what_it_tells),
        cmocka_unit_test(a_follower_may_be_closed_between_slices),
        cmocka_unit_test(without_a_place_for_a_file_a_large_transaction_is_a_fault),
        cmocka_unit_test(a_file_that_cannot_grow_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
