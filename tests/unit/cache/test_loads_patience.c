/* How long each who asks is made to wait: by the time of his own asking, whoever else waits for the
 * same key, and however long its query has been on its way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "loads_bench.h"

enum { TIMEOUT_MS = 2000, GRACE_MS = 250, PAST_TIMEOUT_MS = 3000 };

/* So that what is asked now and what is asked next differ by that at least. */
static uint64_t pass(uint64_t ms)
{
    uint64_t until = clock_ms() + ms;
    while (clock_ms() <= until)
        uv_sleep(1);
    return until;
}

/* ---- the same key ---- */

static void who_waits_for_less_long_goes_on_waiting_for_the_same_query(void **state)
{
    static const int older, younger;
    struct bench bench;
    struct asked waiting[3], one, other;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    bench.client = &older;
    ask(&bench, &one, "item:1");
    uint64_t between = pass(20);
    bench.client = &younger;
    ask(&bench, &other, "item:1");
    end_queries(3);
    assert_int_equal(fake_pool.count, 1);
    loads_check_time(bench.loads, between + TIMEOUT_MS + GRACE_MS);
    must_get(&bench, &one, LOAD_TIMEOUT);
    must_wait(&bench, &other);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    row_is("payload");
    must_get_value(&bench, &other, "payload");
    must_fill("item:1", "payload");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* One load that took too long, however many it did for. */
static void a_query_counts_once_however_many_have_waited_too_long(void **state)
{
    struct bench bench;
    struct asked one, other;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    uint64_t between = pass(20);
    ask(&bench, &other, "item:1");
    loads_check_time(bench.loads, between + TIMEOUT_MS + GRACE_MS);
    must_get(&bench, &one, LOAD_TIMEOUT);
    must_wait(&bench, &other);
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &other, LOAD_TIMEOUT);
    fake_outcome(PG_TIMEOUT);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    assert_false(loads_in_flight(bench.loads, key_make(ITEMS, span_of("item:1"))));
    bench_finish(&bench);
}

/* ---- a query that took too long for others ---- */

static void it_is_joined_and_not_asked_again(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &first, LOAD_TIMEOUT);
    ask(&bench, &joined, "item:1");
    must_wait(&bench, &joined);
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(COUNTED(&bench, coalesced), 1);
    row_is("payload");
    must_get_value(&bench, &joined, "payload");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void its_absence_is_told_to_nobody_who_joined_it(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    ask(&bench, &joined, "item:1");
    fake_no_row();
    must_wait(&bench, &joined);
    assert_int_equal(fake_pool.count, 1);
    row_is("new");
    must_get_value(&bench, &joined, "new");
    must_get(&bench, &first, LOAD_TIMEOUT);
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

/* A server that is frozen ends no statement, and a connection not at once. */
static void who_joins_one_that_hangs_waits_for_his_own_time(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    ask(&bench, &joined, "item:1");
    loads_check_time(bench.loads, clock_ms() + TIMEOUT_MS - 100);
    must_wait(&bench, &joined);
    loads_check_time(bench.loads, clock_ms() + PAST_TIMEOUT_MS);
    must_get(&bench, &joined, LOAD_TIMEOUT);
    assert_int_equal(fake_pool.count, 1);
    end_queries(1);
    bench_finish(&bench);
}

/* Its turn there comes when it comes, and may be next. */
static void one_that_waits_for_the_way_of_large_rows_is_wanted_by_who_joins_it(void **state)
{
    struct bench bench;
    struct asked large, other, joined;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask(&bench, &large, "item:1");
    ask(&bench, &other, "item:2");
    fake_large_row("1", "2000000");
    fake_large_row("2", "2000000");
    uint64_t between = pass(20);
    ask(&bench, &joined, "item:2");
    loads_check_time(bench.loads, between + TIMEOUT_MS + GRACE_MS);
    must_get(&bench, &other, LOAD_TIMEOUT);
    assert_int_equal(fake_pool.count, 1);
    fake_outcome(PG_DOWN);
    assert_int_equal(fake_pool.count, 1); /* the other's, which has the way now */
    fake_row(FAKE_TEXT, (const char *[]){"payload", "2"}, 2);
    must_get_value(&bench, &joined, "payload");
    fill_ends(REDIS_DONE);
    assert_int_equal(lane.taken + lane.waiting, 0);
    bench_finish(&bench);
}

/* ---- a query that the database gives up ---- */

static void who_joined_it_gets_another(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &joined, "item:1");
    fake_outcome(PG_TIMEOUT);
    must_get(&bench, &first, LOAD_TIMEOUT);
    must_wait(&bench, &joined);
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    fake_outcome(PG_TIMEOUT);
    must_get(&bench, &joined, LOAD_TIMEOUT);
    assert_int_equal(COUNTED(&bench, loads_timeout), 2);
    assert_int_equal(fake_pool.count, 0);
    bench_finish(&bench);
}

/* The first query of its connection was overdue. */
static void end_early(void)
{
    fake_answer(&(struct pg_answer){.outcome = PG_TIMEOUT, .early = true});
}

static void who_asked_for_it_gets_another_if_it_was_given_up_for_others(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &first, "item:1");
    ask(&bench, &joined, "item:1");
    for (int i = 0; i < 3; i++) {
        end_early();
        must_wait(&bench, &first);
        must_wait(&bench, &joined);
        assert_int_equal(fake_pool.count, 1);
    }
    row_is("payload");
    must_get_value(&bench, &first, "payload");
    must_get_value(&bench, &joined, "payload");
    assert_int_equal(COUNTED(&bench, loads_timeout), 0);
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void but_not_when_his_own_time_is_over(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    bench.shared->config->load_timeout_ms = 40;
    ask(&bench, &one, "item:1");
    pass(40);
    end_early();
    must_get(&bench, &one, LOAD_TIMEOUT);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    assert_int_equal(fake_pool.count, 0);
    assert_false(loads_in_flight(bench.loads, key_make(ITEMS, span_of("item:1"))));
    bench_finish(&bench);
}

/* Nobody is told, and nothing was brought. */
static void nor_is_it_asked_for_who_has_gone(void **state)
{
    struct bench bench;
    struct asked one;
    _Atomic bool gone = false;
    (void)state;
    bench_init(&bench, "");
    bench.gone = &gone;
    ask(&bench, &one, "item:1");
    gone = true;
    end_early();
    assert_int_equal(fake_pool.count, 0);
    assert_int_equal(COUNTED(&bench, loads_timeout), 0);
    assert_false(loads_in_flight(bench.loads, key_make(ITEMS, span_of("item:1"))));
    bench_finish(&bench);
}

/* That there is no other connection is an error, too. */
static void nor_where_the_database_is_down(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    end_early();
    must_wait(&bench, &one);
    fake_outcome(PG_DOWN);
    must_get(&bench, &one, LOAD_DOWN);
    assert_int_equal(fake_pool.count, 0);
    bench_finish(&bench);
}

/* What it says of then is what holds then. */
static void a_change_before_that_other_one_does_not_make_it_stale(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    ask(&bench, &one, "item:1");
    loads_changed(bench.loads, key_make(ITEMS, span_of("item:1")));
    end_early();
    row_is("new");
    must_get_value(&bench, &one, "new");
    must_fill("item:1", "new");
    fill_ends(REDIS_DONE);
    bench_finish(&bench);
}

static void a_large_row_has_its_way_anew_for_another(void **state)
{
    struct bench bench;
    struct asked one;
    (void)state;
    bench_init(&bench, "");
    struct row_lane lane = lane_of(&bench);
    bench.rows.lane = &lane;
    ask(&bench, &one, "item:1");
    fake_large_row("1", "2000000");
    assert_int_equal(lane.inside, 1);
    end_early();
    assert_int_equal(lane.inside, 0);
    fake_large_row("1", "2000000");
    assert_int_equal(lane.inside, 1);
    row_is("payload");
    must_get_value(&bench, &one, "payload");
    fill_ends(REDIS_DONE);
    assert_int_equal(lane.taken + lane.waiting + lane.inside, 0);
    bench_finish(&bench);
}

/* Of many who ask together all but one have joined it: they need not all wait a second time. */
static void who_joined_it_when_it_began_gets_no_other(void **state)
{
    struct bench bench;
    struct asked first, joined;
    (void)state;
    bench_init(&bench, "");
    bench.shared->config->load_timeout_ms = 40;
    ask(&bench, &first, "item:1");
    ask(&bench, &joined, "item:1");
    pass(40);
    fake_outcome(PG_TIMEOUT);
    must_get(&bench, &first, LOAD_TIMEOUT);
    must_get(&bench, &joined, LOAD_TIMEOUT);
    assert_int_equal(fake_pool.count, 0);
    assert_int_equal(COUNTED(&bench, loads_timeout), 1);
    bench_finish(&bench);
}

/* ---- another turn ---- */

/* He was told nothing by the query that he joined; his time goes on from when he asked. */
static void who_waits_for_a_second_query_waits_no_longer_in_all(void **state)
{
    struct bench bench;
    struct asked waiting[3], before, late;
    (void)state;
    bench_init(&bench, "");
    fill_budget(&bench, waiting);
    ask(&bench, &before, "item:1");
    ask(&bench, &late, "item:7");
    uint64_t between = pass(20);
    fake_no_row();
    must_get(&bench, &waiting[0], LOAD_ABSENT);
    assert_int_equal(fake_pool.count, 3);
    assert_int_equal(loads_waits(bench.loads).now, 1);
    loads_check_time(bench.loads, between + TIMEOUT_MS);
    must_get(&bench, &late, LOAD_BUSY);
    must_wait(&bench, &before);
    end_queries(3);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_less_long_goes_on_waiting_for_the_same_query),
        cmocka_unit_test(a_query_counts_once_however_many_have_waited_too_long),
        cmocka_unit_test(it_is_joined_and_not_asked_again),
        cmocka_unit_test(its_absence_is_told_to_nobody_who_joined_it),
        cmocka_unit_test(who_joins_one_that_hangs_waits_for_his_own_time),
        cmocka_unit_test(one_that_waits_for_the_way_of_large_rows_is_wanted_by_who_joins_it),
        cmocka_unit_test(who_joined_it_gets_another),
        cmocka_unit_test(who_joined_it_when_it_began_gets_no_other),
        cmocka_unit_test(who_asked_for_it_gets_another_if_it_was_given_up_for_others),
        cmocka_unit_test(but_not_when_his_own_time_is_over),
        cmocka_unit_test(nor_is_it_asked_for_who_has_gone),
        cmocka_unit_test(nor_where_the_database_is_down),
        cmocka_unit_test(a_change_before_that_other_one_does_not_make_it_stale),
        cmocka_unit_test(a_large_row_has_its_way_anew_for_another),
        cmocka_unit_test(who_waits_for_a_second_query_waits_no_longer_in_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
