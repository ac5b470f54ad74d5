/* The races that caches die of, as orders of events: change, query, joining, answer, fill,
 * generation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

static const struct span item_1 = {"item:1", 6};

/* ---- joining late ---- */

/* Its commit may be younger than what the query sees. */
static void a_late_joiner_is_told_absent_only_by_a_query_of_its_own(void **state)
{
    struct bench bench;
    struct asked first, late;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &late, "item:1");
    fake_no_row();
    must_get(&bench, &first, LOAD_ABSENT);
    must_wait(&bench, &late);
    assert_int_equal(fake_pool.count, 1);
    assert_string_equal(fake_pool.queries[0].values[0], "1");
    fake_no_row();
    must_get(&bench, &late, LOAD_ABSENT);
    bench_finish(&bench);
}

static void a_late_joiner_sees_the_row_that_its_own_query_finds(void **state)
{
    struct bench bench;
    struct asked first, late, later;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &late, "item:1");
    fake_no_row();
    ask(&bench, &later, "item:1"); /* late for the second query, too */
    row_is("new");
    must_get(&bench, &first, LOAD_ABSENT);
    must_get_value(&bench, &late, "new");
    must_get_value(&bench, &later, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* Whoever keeps joining late is served in turns: each query answers all who asked before it. */
static void those_who_join_one_after_the_other_are_all_answered(void **state)
{
    struct bench bench;
    struct asked all[10];
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &all[0], "item:1");
    for (int i = 1; i < 10; i++) {
        ask(&bench, &all[i], "item:1");
        fake_no_row();
        must_get(&bench, &all[i - 1], LOAD_ABSENT);
        must_wait(&bench, &all[i]);
    }
    fake_no_row();
    must_get(&bench, &all[9], LOAD_ABSENT);
    bench_finish(&bench);
}

/* The database answers three at a time: who joins late again and again keeps nobody from his turn.
 */
static void who_joins_late_waits_for_his_turn_like_others(void **state)
{
    struct bench bench;
    struct asked first[3], late[3], other;
    int attacker, client;
    (void)state;
    bench_init(&bench, "");
    bench.client = &attacker;
    for (int i = 0; i < 3; i++) {
        const char *const keys[] = {"item:1", "item:2", "item:3"};
        ask(&bench, &first[i], keys[i]);
        ask(&bench, &late[i], keys[i]);
    }
    bench.client = &client;
    ask(&bench, &other, "item:4");
    fake_no_row();
    must_get(&bench, &first[0], LOAD_ABSENT);
    assert_int_equal(fake_pool.count, 3);
    assert_string_equal(fake_pool.queries[2].values[0], "4");
    for (int i = 0; i < 6; i++)
        fake_no_row();
    must_get(&bench, &other, LOAD_ABSENT);
    for (int i = 0; i < 3; i++)
        must_get(&bench, &late[i], LOAD_ABSENT);
    bench_finish(&bench);
}

/* What one query did not see is no longer so when the next one sees it. */
static void a_row_that_is_found_is_not_remembered_as_absent(void **state)
{
    struct bench bench;
    struct asked first, late, after;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &late, "item:1");
    fake_no_row();
    row_is("new");
    must_get_value(&bench, &late, "new");
    fill_ends(REDIS_DONE);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    ask(&bench, &after, "item:1");
    must_wait(&bench, &after);
    row_is("new");
    must_get_value(&bench, &after, "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* ---- a change while a load is on its way ---- */

static void a_change_during_the_query_keeps_its_row_out_of_the_cache(void **state)
{
    struct bench bench;
    struct asked before;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &before, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    row_is("old");
    must_get_value(&bench, &before, "old"); /* it asked before the change */
    assert_int_equal(fake_redis.count, 0);
    assert_false(loads_in_flight(bench.loads, key_make(ITEMS, item_1)));
    bench_finish(&bench);
}

static void a_change_during_the_query_keeps_its_absence_from_being_remembered(void **state)
{
    struct bench bench;
    struct asked before;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &before, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    fake_no_row();
    must_get(&bench, &before, LOAD_ABSENT);
    assert_false(loads_knows_absent(bench.loads, key_make(ITEMS, item_1)));
    assert_int_equal(COUNTED(&bench, false_positives), 0);
    bench_finish(&bench);
}

static void who_joins_after_the_change_gets_a_query_of_their_own(void **state)
{
    struct bench bench;
    struct asked before, joined, after;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &before, "item:1");
    ask(&bench, &joined, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    ask(&bench, &after, "item:1");
    row_is("old");
    must_get_value(&bench, &before, "old");
    must_get_value(&bench, &joined, "old");
    must_wait(&bench, &after);
    assert_int_equal(fake_redis.count, 0);
    assert_int_equal(fake_pool.count, 1);
    row_is("new");
    must_get_value(&bench, &after, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void a_second_change_makes_the_second_query_stale_too(void **state)
{
    struct bench bench;
    struct asked before, between, after;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &before, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    ask(&bench, &between, "item:1");
    row_is("one");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    ask(&bench, &after, "item:1");
    row_is("two");
    must_get_value(&bench, &between, "two");
    must_wait(&bench, &after);
    assert_int_equal(fake_redis.count, 0);
    row_is("three");
    must_get_value(&bench, &after, "three");
    must_fill("item:1", "three");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* The value that is being written is older than the change: nobody may be given it any more. */
static void a_change_during_the_fill_takes_its_value_from_who_asks_later(void **state)
{
    struct bench bench;
    struct asked before, after;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &before, "item:1");
    row_is("old");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    ask(&bench, &after, "item:1");
    must_wait(&bench, &after);
    fill_ends(REDIS_DONE);
    fake_no_row();
    must_get(&bench, &after, LOAD_ABSENT);
    bench_finish(&bench);
}

static void a_change_of_another_key_disturbs_nothing(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    loads_changed(bench.loads, key_make(0, span_of("item:11")));
    loads_changed(bench.loads, key_make(0, span_of("item:")));
    row_is("payload");
    must_fill("item:1", "payload");
    fill_ends(REDIS_DONE);
    must_get_value(&bench, &one, "payload");
    bench_finish(&bench);
}

/* A change that comes before the time-out must not be lost by it. */
static void a_stale_load_past_its_time_fills_nothing(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, item_1));
    loads_check_time(bench.loads, clock_ms() + 5000);
    must_get(&bench, &one, LOAD_TIMEOUT);
    row_is("old");
    assert_int_equal(fake_redis.count, 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_joiner_is_told_absent_only_by_a_query_of_its_own),
        cmocka_unit_test(a_late_joiner_sees_the_row_that_its_own_query_finds),
        cmocka_unit_test(those_who_join_one_after_the_other_are_all_answered),
        cmocka_unit_test(who_joins_late_waits_for_his_turn_like_others),
        cmocka_unit_test(a_row_that_is_found_is_not_remembered_as_absent),
        cmocka_unit_test(a_change_during_the_query_keeps_its_row_out_of_the_cache),
        cmocka_unit_test(a_change_during_the_query_keeps_its_absence_from_being_remembered),
        cmocka_unit_test(who_joins_after_the_change_gets_a_query_of_their_own),
        cmocka_unit_test(a_second_change_makes_the_second_query_stale_too),
        cmocka_unit_test(a_change_during_the_fill_takes_its_value_from_who_asks_later),
        cmocka_unit_test(a_change_of_another_key_disturbs_nothing),
        cmocka_unit_test(a_stale_load_past_its_time_fills_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
