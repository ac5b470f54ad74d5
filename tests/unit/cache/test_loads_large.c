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
    struct asked large[2], others[3];
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask(&bench, &large[0], "item:1");
    ask(&bench, &large[1], "item:2");
    ask(&bench, &others[0], "item:3");
    ask(&bench, &others[1], "item:4");
    ask(&bench, &others[2], "item:5");
    assert_int_equal(loads_waits(bench.loads).now, 2);
    fake_large_row("1", "2000000"); /* which goes on, and leaves its place as well */
    assert_int_equal(loads_waits(bench.loads).now, 1);
    fake_large_row("2", "2000000");
    assert_int_equal(loads_waits(bench.loads).now, 0);
    assert_int_equal(fake_pool.count, 4); /* the others', and the first of the large ones */
    fake_outcome(PG_DOWN);
    must_get(&bench, &others[0], LOAD_DOWN);
    loads_check_time(bench.loads, clock_ms() + 2300);
    must_get(&bench, &large[1], LOAD_TIMEOUT);
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 2);
    end_queries(2);
    assert_int_equal(lane.taken + lane.waiting + lane.inside, 0);
    assert_int_equal(COUNTED(&bench, loads_timeout), 4);
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

/* Nor does who asks for one of them. */
static void who_joins_a_large_row_waits_for_one_of_each_other_place_at_most(void **state)
{
    static const char *const names[] = {"item:1", "item:2", "item:3", "item:4", "item:5"};
    static const char *const wanted[] = {"3", "5", "4"};
    struct bench bench;
    struct asked many[5], one;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.origin = 1;
    for (int i = 0; i < 5; i++)
        ask(&bench, &many[i], names[i]);
    fake_large_row("1", "2000000");
    fake_large_row("2", "2000000");
    fake_large_row("3", "2000000");
    fake_outcome(PG_DOWN); /* the first, which was being read */
    fake_large_row("4", "2000000");
    fake_large_row("5", "2000000");
    bench.origin = 2;
    ask(&bench, &one, "item:5");
    for (int i = 0; i < 3; i++) {
        fake_outcome(PG_DOWN);
        assert_string_equal(fake_pool.queries[0].values[0], wanted[i]);
    }
    end_queries(1);
    must_get(&bench, &one, LOAD_DOWN);
    for (int i = 0; i < 5; i++)
        must_get(&bench, &many[i], LOAD_DOWN);
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

/* One who asks for one at a time has no line any more when it is read, and would be as one who has
 * just come each time. */
static void a_large_row_is_paid_for_by_who_waits_for_nothing_else(void **state)
{
    struct bench bench;
    struct asked large, others[4], next;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.origin = 1;
    ask(&bench, &large, "item:1");
    bench.origin = 2;
    ask(&bench, &others[0], "item:2");
    ask(&bench, &others[1], "item:3");
    ask(&bench, &others[2], "item:4");
    fake_large_row("1", "2000000");
    assert_int_equal(fake_pool.count, 4);
    bench.origin = 1;
    ask(&bench, &next, "item:5");
    bench.origin = 3;
    ask(&bench, &others[3], "item:6");
    assert_int_equal(loads_waits(bench.loads).now, 2);
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 4);
    assert_string_equal(fake_pool.queries[3].values[0], "6");
    fake_outcome(PG_DOWN);
    assert_string_equal(fake_pool.queries[3].values[0], "5");
    end_queries(4);
    bench_finish(&bench);
}

static bool is_asked_for(const char *id)
{
    for (size_t i = 0; i < fake_pool.count; i++)
        if (strcmp(fake_pool.queries[i].values[0], id) == 0)
            return true;
    return false;
}

/* Since its connection was given up for another's time. */
static void a_large_row_that_must_be_read_again_is_paid_for_once(void **state)
{
    static const char *const names[] = {"item:10", "item:11", "item:12", "item:13", "item:14",
                                        "item:15", "item:16", "item:17", "item:18", "item:19"};
    struct bench bench;
    struct asked large, next, others[10];
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.origin = 1;
    ask(&bench, &large, "item:1");
    fake_large_row("1", "2000000");
    fake_answer(&(struct pg_answer){.outcome = PG_TIMEOUT, .early = true});
    bench.origin = 2;
    for (int i = 0; i < 10; i++)
        ask(&bench, &others[i], names[i]);
    fake_large_row("1", "2000000"); /* while others wait: a debt now would last */
    assert_int_equal(lane.inside, 1);
    bench.origin = 1;
    ask(&bench, &next, "item:2");
    for (int i = 0; i < 5 && !is_asked_for("2"); i++)
        fake_outcome(PG_DOWN);
    assert_true(is_asked_for("2"));
    while (fake_pool.count)
        end_queries(1);
    must_get(&bench, &next, LOAD_DOWN);
    must_get(&bench, &large, LOAD_DOWN);
    assert_int_equal(lane.taken + lane.waiting, 0);
    bench_finish(&bench);
}

/* ---- turns ---- */

/* Whoever asks for many, over however few connections, keeps none of its place waiting for all of
 * them. */
static void clients_of_one_place_have_turns_for_large_rows(void **state)
{
    static const int many_asks, one_asks;
    struct bench bench;
    struct asked many[4], one;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    bench.client = &many_asks;
    for (int i = 0; i < 4; i++)
        ask(&bench, &many[i], (const char *[]){"item:1", "item:2", "item:3", "item:4"}[i]);
    fake_large_row("1", "2000000");
    fake_large_row("2", "2000000");
    fake_large_row("3", "2000000");
    bench.client = &one_asks;
    ask(&bench, &one, "item:5");
    fake_outcome(PG_DOWN); /* of the first, and the second has the way */
    fake_large_row("4", "2000000");
    fake_large_row("5", "2000000");
    fake_outcome(PG_DOWN); /* so has the third */
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 1);
    assert_string_equal(fake_pool.queries[0].values[0], "5");
    end_queries(2);
    must_get(&bench, &one, LOAD_DOWN);
    must_get(&bench, &many[3], LOAD_DOWN);
    assert_int_equal(lane.taken + lane.waiting, 0);
    bench_finish(&bench);
}

/* ---- those that nobody wants ---- */

/* One that would have to wait for room, and a smaller one that has it. */
static void ask_for_two_behind_a_large_row(struct bench *bench, struct asked asked[3],
                                           const _Atomic bool *second_is_gone)
{
    ask(bench, &asked[0], "item:1");
    bench->gone = second_is_gone;
    ask(bench, &asked[1], "item:2");
    bench->gone = NULL;
    ask(bench, &asked[2], "item:3");
    fake_large_row("1", "2000000");
    fake_large_row("2", "2000000");
}

static void who_waits_behind_a_row_that_nobody_wants_does_not_wait_for_its_room(void **state)
{
    struct bench bench;
    struct asked asked[3];
    _Atomic bool gone = false;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask_for_two_behind_a_large_row(&bench, asked, &gone);
    gone = true;
    fake_large_row("3", "900000");
    assert_int_equal(lane.waiting, 0);
    assert_int_equal(lane.inside, 2);
    must_get(&bench, &asked[1], LOAD_TIMEOUT);
    assert_int_equal(COUNTED(&bench, loads_timeout), 0);
    end_queries(2);
    bench_finish(&bench);
}

/* Nobody comes, and nobody is ready, for long. */
static void nor_does_who_waits_behind_one_that_nobody_wants_any_more(void **state)
{
    struct bench bench;
    struct asked asked[3];
    _Atomic bool gone = false;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask_for_two_behind_a_large_row(&bench, asked, &gone);
    fake_large_row("3", "900000");
    assert_int_equal(lane.waiting, 2);
    gone = true;
    loads_check_time(bench.loads, clock_ms());
    assert_int_equal(lane.waiting, 0);
    assert_int_equal(lane.inside, 2);
    must_wait(&bench, &asked[2]);
    end_queries(2);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_row_that_waits_for_another_holds_no_place),
        cmocka_unit_test(a_large_row_waits_for_one_of_each_other_place_at_most),
        cmocka_unit_test(who_joins_a_large_row_waits_for_one_of_each_other_place_at_most),
        cmocka_unit_test(a_large_row_is_paid_for_before_it_is_read),
        cmocka_unit_test(large_rows_that_are_read_hold_no_place),
        cmocka_unit_test(a_large_row_is_paid_for_by_who_waits_for_nothing_else),
        cmocka_unit_test(a_large_row_that_must_be_read_again_is_paid_for_once),
        cmocka_unit_test(clients_of_one_place_have_turns_for_large_rows),
        cmocka_unit_test(who_waits_behind_a_row_that_nobody_wants_does_not_wait_for_its_room),
        cmocka_unit_test(nor_does_who_waits_behind_one_that_nobody_wants_any_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
