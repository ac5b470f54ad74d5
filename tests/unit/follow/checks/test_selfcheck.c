/* The course of a self-check, with a database that answers when the test says so. What the sample
 * is made of is in test_selfcheck_sql.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "selfcheck_bench.h"

/* ---- what passes ---- */

static void rows_that_are_all_possible_pass(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    learn(bench.generation, ITEMS, "item:2");
    learn(bench.generation, ORDERS, "order:ann:7");
    begin(&bench);
    ITEMS_ARE("1", "2", "1");
    assert_int_equal(bench.calls, 0);
    few_are(ORDERS, 3, 1, (const char *[]){"ann", "7", "700"});
    must_pass(&bench, 2); /* one row was seen twice */
    assert_int_equal(bench.outcome, SELFCHECK_PASSED);
    assert_int_equal(bench.orders.rows, 1);
    bench_finish(&bench);
}

static void empty_tables_pass(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    no_items();
    no_orders();
    must_pass(&bench, 0);
    assert_int_equal(bench.outcome, SELFCHECK_EMPTY);
    bench_finish(&bench);
}

static void a_row_that_is_gone_meanwhile_passes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("1");
    no_orders();
    assert_int_equal(fake_pool.queries[0].statement, FIND_ITEM);
    assert_string_equal(fake_pool.queries[0].values[0], "1");
    assert_int_equal(bench.calls, 0);
    fake_no_row();
    must_pass(&bench, 1);
    bench_finish(&bench);
}

static void a_row_that_the_filter_learns_late_passes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("1");
    no_orders();
    row_is("1");
    learn(bench.generation, ITEMS, "item:1");
    all_is_known(&bench);
    must_pass(&bench, 1);
    bench_finish(&bench);
}

static void a_row_that_the_filter_learns_before_it_is_looked_into_costs_no_question(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("1", "2");
    learn(bench.generation, ITEMS, "item:1");
    learn(bench.generation, ITEMS, "item:2");
    no_orders();
    must_pass(&bench, 2);
    bench_finish(&bench);
}

/* ---- what fails ---- */

static void a_row_that_the_filter_never_learns_fails(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    ITEMS_ARE("1", "2");
    no_orders();
    confirm(&bench, "2");
    must_fail(&bench, "keyspace items: the database has a row of key item:2, the filter has not");
    assert_int_equal(bench.items.rows, 2);
    assert_int_equal(bench.items.outcome, SELFCHECK_FAILED);
    assert_int_equal(bench.orders.outcome, SELFCHECK_EMPTY);
    bench_finish(&bench);
}

static void the_first_confirmed_row_ends_it_whatever_is_under_way(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("5", "6", "7", "8", "9", "10");
    no_orders();
    assert_int_equal(fake_pool.count, 4);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            char id[8];
            snprintf(id, sizeof id, "%s", fake_pool.queries[0].values[0]);
            row_is(id);
        }
        all_is_known(&bench);
    }
    assert_int_equal(bench.calls, 1);
    assert_non_null(strstr(bench.why, "keyspace items"));
    all_is_known(&bench);
    bench_finish(&bench);
}

static void a_failure_shows_any_key_safely(void **state)
{
    struct bench bench;
    char id[302] = "a\n\x1b\x7f", *wanted;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE(id);
    no_orders();
    confirm(&bench, id);
    must_fail(&bench,
              "keyspace items: the database has a row of key item:a???, the filter has not");
    memset(id, 'x', 300);
    bench.calls = 0;
    begin(&bench);
    ITEMS_ARE(id);
    no_orders();
    confirm(&bench, id);
    wanted = xasprintf(
        "keyspace items: the database has a row of key item:%.195s..., the filter has not", id);
    must_fail(&bench, wanted);
    free(wanted);
    bench_finish(&bench);
}

static void a_table_that_cannot_be_read_hides_no_fault_of_another(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("1");
    fake_outcome(PG_DOWN);
    fake_pool.params = 1;
    fake_outcome(PG_DOWN);
    confirm(&bench, "1");
    must_fail(&bench, "keyspace items: the database has a row of key item:1, the filter has not");
    assert_int_equal(bench.orders.outcome, SELFCHECK_NO_ROW);
    bench_finish(&bench);
}

/* ---- what could not be found out ---- */

static void an_undecided_check_leaves_it_undecided_when_the_others_have_ended(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    begin(&bench);
    ITEMS_ARE("1", "2", "3");
    no_orders();
    assert_int_equal(fake_pool.count, 2);
    fake_outcome(PG_TIMEOUT);
    assert_int_equal(bench.calls, 0);
    assert_int_equal(fake_pool.count, 1);
    fake_no_row();
    must_be_undecided(&bench);
    bench_finish(&bench);
}

static void a_generation_given_up_leaves_it_undecided(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    begin(&bench);
    ITEMS_ARE("1", "2", "3");
    no_orders();
    fn_checks_forget(bench.fn_checks, bench.generation);
    must_be_undecided(&bench);
    fake_no_row();
    bench_finish(&bench);
}

static void count_end(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    (void)other;
    (void)key;
    (void)outcome;
    ++*(int *)arg;
}

static void when_others_take_all_places_it_is_undecided(void **state)
{
    struct bench bench;
    int ends = 0;
    (void)state;
    bench_init(&bench, 1);
    fake_pool.params = 1;
    assert_true(fn_checks_add(bench.fn_checks, bench.generation, key_make(ITEMS, span_of("item:0")),
                              count_end, &ends));
    row_is("0"); /* and now it waits */
    begin(&bench);
    ITEMS_ARE("1");
    no_orders();
    must_be_undecided(&bench);
    assert_int_equal(ends, 0);
    fn_checks_forget(bench.fn_checks, bench.generation);
    assert_int_equal(ends, 1);
    bench_finish(&bench);
}

/* ---- more rows than places, and the end ---- */

static void every_row_gets_its_turn_though_places_are_few(void **state)
{
    struct bench bench;
    bool seen[6] = {false};
    (void)state;
    bench_init(&bench, 2);
    begin(&bench);
    ITEMS_ARE("0", "1", "2", "3", "4", "5");
    no_orders();
    for (int i = 0; i < 6; i++) {
        assert_int_equal(bench.calls, 0);
        assert_in_range(fake_pool.count, 1, 2);
        seen[fake_pool.queries[0].values[0][0] - '0'] = true;
        fake_no_row();
    }
    must_pass(&bench, 6);
    for (int i = 0; i < 6; i++)
        assert_true(seen[i]);
    bench_finish(&bench);
}

static void who_cancels_is_not_called(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    selfcheck_cancel(NULL);
    begin(&bench); /* while the sample is under way */
    selfcheck_cancel(bench.check);
    rows_are(ITEMS, SELFCHECK_SAMPLE, 2, 1, (const char *[]){"1", "700"});
    begin(&bench); /* while checks are */
    ITEMS_ARE("1", "2", "3");
    no_orders();
    row_is("3");
    selfcheck_cancel(bench.check);
    all_is_known(&bench);
    fake_no_row();
    assert_int_equal(bench.calls, 0);
    bench_finish(&bench);
}

static void a_cancelled_ones_answer_may_come_after_everything_else_has_gone(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    begin(&bench);
    selfcheck_cancel(bench.check);
    assert_int_equal(bench.generation->references, 1);
    fn_checks_destroy(bench.fn_checks);
    bench.fn_checks = NULL;
    fake_outcome(PG_DOWN);
    assert_int_equal(bench.calls, 0);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_are_all_possible_pass),
        cmocka_unit_test(empty_tables_pass),
        cmocka_unit_test(a_row_that_is_gone_meanwhile_passes),
        cmocka_unit_test(a_row_that_the_filter_learns_late_passes),
        cmocka_unit_test(a_row_that_the_filter_learns_before_it_is_looked_into_costs_no_question),
        cmocka_unit_test(a_row_that_the_filter_never_learns_fails),
        cmocka_unit_test(the_first_confirmed_row_ends_it_whatever_is_under_way),
        cmocka_unit_test(a_failure_shows_any_key_safely),
        cmocka_unit_test(a_table_that_cannot_be_read_hides_no_fault_of_another),
        cmocka_unit_test(an_undecided_check_leaves_it_undecided_when_the_others_have_ended),
        cmocka_unit_test(a_generation_given_up_leaves_it_undecided),
        cmocka_unit_test(when_others_take_all_places_it_is_undecided),
        cmocka_unit_test(every_row_gets_its_turn_though_places_are_few),
        cmocka_unit_test(who_cancels_is_not_called),
        cmocka_unit_test(a_cancelled_ones_answer_may_come_after_everything_else_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
