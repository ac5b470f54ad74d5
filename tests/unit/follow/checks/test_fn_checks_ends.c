/* Checks that nobody wants any more, and callbacks that come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fn_checks_bench.h"

/* ---- giving up ---- */

static void a_generation_given_up_ends_its_checks_undecided(void **state)
{
    struct bench bench;
    struct end asked, answered, foretold, others = {0};
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    fn_check(&bench, &answered, "item:1");
    row_is("1");
    fn_check(&bench, &asked, "item:2");
    learn(bench.generation, ITEMS, "item:3");
    fn_check(&bench, &foretold, "item:3");
    fn_checks_add(bench.fn_checks, other, key_make(ITEMS, span_of("item:4")), on_end, &others);
    fn_checks_forget(bench.fn_checks, bench.generation);
    must_end(&asked, FN_CHECK_UNDECIDED);
    must_end(&answered, FN_CHECK_UNDECIDED);
    must_end(&foretold, FN_CHECK_UNDECIDED);
    assert_int_equal(bench.generation->references, 1);
    assert_int_equal(others.calls, 0);
    row_is("2");
    fn_checks_known(bench.fn_checks, bench.generation, UINT64_MAX);
    must_end(&asked, FN_CHECK_UNDECIDED); /* once */
    fake_no_row();
    must_end(&others, FN_CHECK_CLEARED);
    generation_release(other);
    bench_finish(&bench);
}

static void give_up_all(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    struct bench *bench = arg;
    (void)key, (void)outcome, (void)other;
    fn_checks_forget(bench->fn_checks, bench->generation);
}

/* Who is told of one check may give the generation up before the next one is told. */
static void what_has_ended_keeps_its_outcome(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    learn(bench.generation, ITEMS, "item:2");
    fn_checks_add(bench.fn_checks, bench.generation, key_make(ITEMS, span_of("item:1")),
                  give_up_all, &bench);
    fn_check(&bench, &end, "item:2");
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&end, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

/* So that a database that hangs is not asked ever more by generation after generation. */
static void a_question_on_its_way_keeps_its_place(void **state)
{
    struct bench bench;
    struct end end, next;
    (void)state;
    bench_init(&bench, 1);
    fn_check(&bench, &end, "item:1");
    fn_checks_forget(bench.fn_checks, bench.generation);
    must_end(&end, FN_CHECK_UNDECIDED);
    assert_false(try_to_check(&bench, &next, "item:2"));
    fake_no_row();
    fn_check(&bench, &next, "item:2");
    fake_no_row();
    must_end(&next, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void who_cancels_is_not_called(void **state)
{
    struct bench bench;
    struct end asked, answered, others;
    (void)state;
    bench_init(&bench, 3);
    fn_check(&bench, &answered, "item:1");
    row_is("1");
    fn_check(&bench, &asked, "item:2");
    fn_check(&bench, &others, "item:3");
    fn_checks_cancel(bench.fn_checks, &answered);
    fn_checks_cancel(bench.fn_checks, &asked);
    fn_checks_cancel(bench.fn_checks, &asked);
    assert_int_equal(bench.generation->references, 2);
    all_is_known(&bench);
    fake_no_row();
    fake_no_row();
    assert_int_equal(asked.calls + answered.calls, 0);
    must_end(&others, FN_CHECK_CLEARED);
    bench_finish(&bench);
}

static void destruction_calls_nobody_whatever_is_under_way(void **state)
{
    struct bench bench;
    struct end asked, answered, foretold, forgotten = {0};
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    fn_check(&bench, &answered, "item:1");
    row_is("1");
    fn_check(&bench, &asked, "item:2");
    learn(bench.generation, ITEMS, "item:3");
    fn_check(&bench, &foretold, "item:3");
    fn_checks_add(bench.fn_checks, other, key_make(ITEMS, span_of("item:2")), on_end, &forgotten);
    fn_checks_forget(bench.fn_checks, other);
    fn_checks_destroy(bench.fn_checks);
    bench.fn_checks = NULL;
    assert_int_equal(bench.generation->references, 1);
    while (fake_pool.count)
        row_is("2");
    assert_int_equal(asked.calls + answered.calls + foretold.calls, 0);
    assert_int_equal(forgotten.calls, 1);
    generation_release(other);
    bench_finish(&bench);
}

/* ---- callbacks that come back ---- */

static struct bench *again_bench;
static struct end *again_end;

static void cancel_the_other(void *arg, struct key key, enum fn_check_outcome outcome,
                             struct span other)
{
    on_end(arg, key, outcome, other);
    fn_checks_cancel(again_bench->fn_checks, again_end);
}

static void a_callback_may_cancel_what_ends_in_the_same_moment(void **state)
{
    struct bench bench;
    struct end ends[2] = {{0}};
    (void)state;
    bench_init(&bench, 2);
    again_bench = &bench;
    again_end = &ends[0];
    for (int i = 0; i < 2; i++) {
        char key[] = "item:0";
        key[5] = (char)('0' + i);
        fn_checks_add(bench.fn_checks, bench.generation, key_make(ITEMS, span_of(key)),
                      cancel_the_other, &ends[i]);
    }
    fn_checks_forget(bench.fn_checks, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 1);
    fake_no_row();
    fake_no_row();
    ends[0].calls = ends[1].calls = 0;
    again_end = &ends[1];
    for (int i = 0; i < 2; i++)
        fn_checks_add(bench.fn_checks, bench.generation, key_make(ITEMS, span_of("item:5")),
                      cancel_the_other, &ends[i]);
    fn_checks_forget(bench.fn_checks, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 0);
    bench_finish(&bench);
}

static void fn_check_again(void *arg, struct key key, enum fn_check_outcome outcome,
                           struct span other)
{
    on_end(arg, key, outcome, other);
    assert_true(
        fn_checks_add(again_bench->fn_checks, again_bench->generation, key, on_end, again_end));
    assert_int_equal(again_end->calls, 0);
}

static void a_callback_may_add_in_the_place_that_was_freed(void **state)
{
    struct bench bench;
    struct end first = {0}, second = {0};
    (void)state;
    bench_init(&bench, 1);
    again_bench = &bench;
    again_end = &second;
    learn(bench.generation, ITEMS, "item:7");
    fn_checks_add(bench.fn_checks, bench.generation, key_make(ITEMS, span_of("item:7")),
                  fn_check_again, &first);
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&first, FN_CHECK_CLEARED);
    assert_int_equal(second.calls, 0);
    fn_checks_known(bench.fn_checks, bench.generation, 1);
    must_end(&second, FN_CHECK_CLEARED);
    assert_string_equal(second.key, "item:7");
    bench_finish(&bench);
}

/* The log told of a deletion that the database does not show yet. */
static void a_row_that_is_gone_unseen_proves_nothing(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 1);
    visibility_changed(bench.visibility, key_make(0, span_of("item:7")), 900);
    fn_check(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, FN_CHECK_UNSEEN);
    bench_finish(&bench);
}

static void a_row_that_is_still_there_when_all_is_seen_is_confirmed(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 1);
    visibility_changed(bench.visibility, key_make(0, span_of("item:7")), 900);
    fn_check(&bench, &end, "item:7");
    row_is("7");
    visibility_learn(bench.visibility, "901:901:");
    all_is_known(&bench);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, FN_CHECK_CONFIRMED);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_given_up_ends_its_checks_undecided),
        cmocka_unit_test(what_has_ended_keeps_its_outcome),
        cmocka_unit_test(a_question_on_its_way_keeps_its_place),
        cmocka_unit_test(who_cancels_is_not_called),
        cmocka_unit_test(destruction_calls_nobody_whatever_is_under_way),
        cmocka_unit_test(a_callback_may_cancel_what_ends_in_the_same_moment),
        cmocka_unit_test(a_callback_may_add_in_the_place_that_was_freed),
        cmocka_unit_test(a_row_that_is_gone_unseen_proves_nothing),
        cmocka_unit_test(a_row_that_is_still_there_when_all_is_seen_is_confirmed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
