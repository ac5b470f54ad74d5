/* What clears a check and what confirms it. How checks go otherwise is in test_fn_checks_ends.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fn_checks_bench.h"

/* ---- outcomes ---- */

static void a_key_without_a_row_is_cleared(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    assert_int_equal(fake_pool.queries[0].statement, FIND_ITEM);
    assert_string_equal(fake_pool.queries[0].values[0], "7");
    assert_int_equal(bench.generation->references, 2);
    fake_no_row();
    must_end(&end, FN_CHECK_CLEARED);
    assert_int_equal(end.keyspace, ITEMS);
    assert_string_equal(end.key, "item:7");
    bench_finish(&bench);
}

static void a_row_that_the_filter_learns_in_time_is_cleared(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    row_is("7");
    assert_int_equal(end.calls, 0);
    learn(bench.generation, ITEMS, "item:7");
    changed(&bench, "item:7");
    all_is_known(&bench);
    must_end(&end, FN_CHECK_CLEARED);
    assert_int_equal(fake_pool.count, 0);
    bench_finish(&bench);
}

static void a_row_that_the_filter_never_learns_is_confirmed_in_the_third_round(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        assert_int_equal(fake_pool.count, 1);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, FN_CHECK_CONFIRMED);
    assert_string_equal(end.key, "item:7");
    assert_int_equal(fake_pool.count, 0);
    bench_finish(&bench);
}

static void a_row_that_is_gone_in_the_last_round_is_cleared(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    row_is("7");
    all_is_known(&bench);
    row_is("7");
    all_is_known(&bench);
    fake_no_row();
    must_end(&end, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void a_row_that_prints_its_key_otherwise_is_told_with_its_own_key(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:007");
    row_is("7");
    fake_no_row();
    must_end(&end, FN_CHECK_OTHER_SPELLING);
    assert_string_equal(end.key, "item:007");
    assert_string_equal(end.other, "item:7");
    bench_finish(&bench);
}

static void a_key_that_is_possible_by_now_costs_no_question(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:7");
    fn_check(&bench, &end, "item:7");
    assert_int_equal(fake_pool.count, 0);
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&end, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void a_key_that_no_column_can_hold_is_cleared_without_a_question(void **state)
{
    struct bench bench;
    struct end end = {0};
    (void)state;
    bench_init(&bench, 4);
    assert_true(fn_checks_add(bench.fn_checks, bench.generation,
                              key_make(ITEMS, (struct span){"item:\0", 6}), on_end, &end));
    assert_int_equal(end.calls, 0);
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&end, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void a_key_with_too_many_splits_is_undecided(void **state)
{
    struct bench bench;
    struct end end = {0};
    (void)state;
    bench_init(&bench, 4);
    assert_true(fn_checks_add(bench.fn_checks, bench.generation,
                              key_make(ORDERS, span_of("order:::::::::::::::::::::::")), on_end,
                              &end));
    assert_int_equal(end.calls, 0);
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&end, FN_CHECK_UNDECIDED);
    bench_finish(&bench);
}

static void a_database_that_cannot_be_asked_leaves_it_undecided(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    for (enum pg_outcome outcome = PG_REFUSED; outcome <= PG_DOWN; outcome++) {
        fn_check(&bench, &end, "item:7");
        fake_outcome(outcome);
        must_end(&end, FN_CHECK_UNDECIDED);
    }
    bench_finish(&bench);
}

/* ---- time ---- */

static void nothing_is_held_against_a_filter_that_is_behind(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    now_ms = 2000; /* a long question: the row may have come at its very end */
    row_is("7");
    for (int i = 0; i < 10; i++)
        fn_checks_known(bench.fn_checks, bench.generation, 1999);
    fn_checks_known(bench.fn_checks, bench.generation, 2000);
    assert_int_equal(fake_pool.count, 0);
    fn_checks_known(bench.fn_checks, bench.generation, 2001);
    assert_int_equal(fake_pool.count, 1);
    fn_checks_known(bench.fn_checks, bench.generation,
                    3000); /* the second answer is not there yet */
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(end.calls, 0);
    bench_finish(&bench);
}

static void without_a_log_everything_is_known(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        row_is("7");
        fn_checks_known(bench.fn_checks, bench.generation, UINT64_MAX);
    }
    must_end(&end, FN_CHECK_CONFIRMED);
    bench_finish(&bench);
}

static void what_another_generation_knows_is_of_no_use(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    fn_check(&bench, &end, "item:7");
    row_is("7");
    fn_checks_known(bench.fn_checks, other, UINT64_MAX);
    assert_int_equal(fake_pool.count, 0);
    all_is_known(&bench);
    assert_int_equal(fake_pool.count, 1);
    generation_release(other);
    bench_finish(&bench);
}

/* ---- rows that change ---- */

/* Inserted, seen, and deleted again: each time before the filter could be asked. */
static void a_row_that_comes_and_goes_is_no_fault(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 9; round++) {
        learn(bench.generation, ITEMS, "item:7");
        row_is("7");
        unlearn(bench.generation, ITEMS, "item:7");
        changed(&bench, "item:7");
        all_is_known(&bench);
        assert_int_equal(end.calls, 0);
        assert_int_equal(fake_pool.count, 1);
    }
    row_is("7");
    changed(&bench, "item:7");
    all_is_known(&bench);
    must_end(&end, FN_CHECK_UNDECIDED);
    bench_finish(&bench);
}

static void a_change_spoils_its_round_only(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 4; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        if (round == 1)
            changed(&bench, "item:7");
        all_is_known(&bench);
    }
    must_end(&end, FN_CHECK_CONFIRMED);
    bench_finish(&bench);
}

static void other_rows_changes_do_not_matter(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        changed(&bench, "item:77");
        changed(&bench, "item:8");
        fn_checks_changed(bench.fn_checks, bench.generation, key_make(ORDERS, span_of("item:7")));
        fn_checks_changed(bench.fn_checks, other, key_make(ITEMS, span_of("item:7")));
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, FN_CHECK_CONFIRMED);
    generation_release(other);
    bench_finish(&bench);
}

/* ---- bounds ---- */

static void more_than_the_limit_are_not_taken(void **state)
{
    struct bench bench;
    struct end ends[3];
    (void)state;
    bench_init(&bench, 2);
    fn_check(&bench, &ends[0], "item:1");
    fn_check(&bench, &ends[1], "item:2");
    assert_false(try_to_check(&bench, &ends[2], "item:3"));
    assert_int_equal(fake_pool.count, 2);
    assert_int_equal(bench.generation->references, 3);
    fake_no_row();
    fn_check(&bench, &ends[2], "item:3");
    fake_no_row();
    fake_no_row();
    for (int i = 0; i < 3; i++)
        must_end(&ends[i], FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void with_a_limit_of_none_none_is_taken(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 0);
    assert_false(try_to_check(&bench, &end, "item:1"));
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_without_a_row_is_cleared),
        cmocka_unit_test(a_row_that_the_filter_learns_in_time_is_cleared),
        cmocka_unit_test(a_row_that_the_filter_never_learns_is_confirmed_in_the_third_round),
        cmocka_unit_test(a_row_that_is_gone_in_the_last_round_is_cleared),
        cmocka_unit_test(a_row_that_prints_its_key_otherwise_is_told_with_its_own_key),
        cmocka_unit_test(a_key_that_is_possible_by_now_costs_no_question),
        cmocka_unit_test(a_key_that_no_column_can_hold_is_cleared_without_a_question),
        cmocka_unit_test(a_key_with_too_many_splits_is_undecided),
        cmocka_unit_test(a_database_that_cannot_be_asked_leaves_it_undecided),
        cmocka_unit_test(nothing_is_held_against_a_filter_that_is_behind),
        cmocka_unit_test(without_a_log_everything_is_known),
        cmocka_unit_test(what_another_generation_knows_is_of_no_use),
        cmocka_unit_test(a_row_that_comes_and_goes_is_no_fault),
        cmocka_unit_test(a_change_spoils_its_round_only),
        cmocka_unit_test(other_rows_changes_do_not_matter),
        cmocka_unit_test(more_than_the_limit_are_not_taken),
        cmocka_unit_test(with_a_limit_of_none_none_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
