/* Large rows among loads: who waits for their way, in whose turn, and who pays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

/* ---- places at the database ---- */

/* Nor is it asked for when nobody wants it any more. */
static void a_large_row_that_waits_for_another_holds_no_place(void **state)
{
    struct bench bench;
    struct asked large[2], others[2];
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask(&bench, &large[0], "item:1");
    ask(&bench, &large[1], "item:2");
    ask(&bench, &others[0], "item:3");
    ask(&bench, &others[1], "item:4");
    fake_large_row("1", "2000000");
    assert_int_equal(loads_waits(bench.loads).now, 1);
    fake_large_row("2", "2000000");
    assert_int_equal(loads_waits(bench.loads).now, 0);
    assert_int_equal(fake_pool.count, 3); /* the others', and the first of the large ones */
    fake_outcome(PG_DOWN);
    must_get(&bench, &others[0], LOAD_DOWN);
    loads_check_time(bench.loads, clock_ms() + 2300);
    must_get(&bench, &large[1], LOAD_TIMEOUT);
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 1);
    end_queries(1);
    assert_int_equal(lane.taken + lane.waiting + lane.inside, 0);
    assert_int_equal(COUNTED(&bench, loads_timeout), 3);
    bench_finish(&bench);
}

/* Whoever asks for many waits for them himself. */
static void a_large_row_waits_for_one_of_each_other_place_at_most(void **state)
{
    struct bench bench;
    struct asked many[3], one;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.origin = 1;
    ask(&bench, &many[0], "item:1");
    ask(&bench, &many[1], "item:2");
    bench.origin = 2;
    ask(&bench, &one, "item:3");
    fake_large_row("1", "2000000");
    fake_large_row("2", "2000000");
    fake_large_row("3", "2000000");
    bench.origin = 1;
    ask(&bench, &many[2], "item:4");
    fake_outcome(PG_DOWN);
    must_get(&bench, &many[0], LOAD_DOWN);
    fake_large_row("4", "2000000");
    fake_outcome(PG_DOWN);
    must_get(&bench, &many[1], LOAD_DOWN);
    fake_row(FAKE_TEXT, (const char *[]){"payload", "3"}, 2);
    must_get_value(&bench, &one, "payload");
    fill_ends(REDIS_DONE);
    fake_outcome(PG_DOWN);
    must_get(&bench, &many[2], LOAD_DOWN);
    assert_int_equal(lane.taken + lane.waiting, 0);
    bench_finish(&bench);
}

/* Whether whoever asked is still there when it comes or not. */
static void a_large_row_is_paid_for_before_it_is_read(void **state)
{
    struct bench bench;
    struct asked large, others[4];
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.origin = 1;
    ask(&bench, &large, "item:1");
    bench.origin = 2;
    ask(&bench, &others[0], "item:2");
    bench.origin = 3;
    ask(&bench, &others[1], "item:3");
    bench.origin = 1;
    ask(&bench, &others[2], "item:4");
    bench.origin = 2;
    ask(&bench, &others[3], "item:5");
    fake_large_row("1", "2000000");
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 4);
    assert_string_equal(fake_pool.queries[2].values[0], "5");
    assert_string_equal(fake_pool.queries[3].values[0], "4");
    end_queries(4);
    bench_finish(&bench);
}

/* Those that have waited go on without asking for one. */
static void large_rows_that_are_read_hold_no_place(void **state)
{
    struct bench bench;
    struct asked large[3], small;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = {.most = 16000000};
    bench.rows.lane = &lane;
    fill_budget(&bench, large);
    for (int i = 0; i < 3; i++)
        fake_large_row((const char *[]){"7", "8", "9"}[i], "2000000");
    assert_int_equal(lane.inside, 3);
    ask(&bench, &small, "item:1");
    assert_int_equal(fake_pool.count, 4);
    end_queries(4);
    must_get(&bench, &small, LOAD_DOWN);
    assert_int_equal(lane.inside, 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_row_that_waits_for_another_holds_no_place),
        cmocka_unit_test(a_large_row_waits_for_one_of_each_other_place_at_most),
        cmocka_unit_test(a_large_row_is_paid_for_before_it_is_read),
        cmocka_unit_test(large_rows_that_are_read_hold_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
