/* Doubts that nobody wants any more, and callbacks that come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "doubts_bench.h"

/* ---- giving up ---- */

static void a_generation_given_up_ends_its_doubts_undecided(void **state)
{
    struct bench bench;
    struct end asked, answered, foretold, others = {0};
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    doubt(&bench, &answered, "item:1");
    row_is("1");
    doubt(&bench, &asked, "item:2");
    learn(bench.generation, ITEMS, "item:3");
    doubt(&bench, &foretold, "item:3");
    doubts_add(bench.doubts, other, key_make(ITEMS, span_of("item:4")), on_end, &others);
    doubts_forget(bench.doubts, bench.generation);
    must_end(&asked, DOUBT_UNDECIDED);
    must_end(&answered, DOUBT_UNDECIDED);
    must_end(&foretold, DOUBT_UNDECIDED);
    assert_int_equal(bench.generation->references, 1);
    assert_int_equal(others.calls, 0);
    row_is("2");
    doubts_known(bench.doubts, bench.generation, UINT64_MAX);
    must_end(&asked, DOUBT_UNDECIDED); /* once */
    fake_no_row();
    must_end(&others, DOUBT_CLEARED);
    generation_release(other);
    bench_finish(&bench);
}

/* So that a database that hangs is not asked ever more by generation after generation. */
static void a_question_on_its_way_keeps_its_place(void **state)
{
    struct bench bench;
    struct end end, next;
    (void)state;
    bench_init(&bench, 1);
    doubt(&bench, &end, "item:1");
    doubts_forget(bench.doubts, bench.generation);
    must_end(&end, DOUBT_UNDECIDED);
    assert_false(try_to_doubt(&bench, &next, "item:2"));
    fake_no_row();
    doubt(&bench, &next, "item:2");
    fake_no_row();
    must_end(&next, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void who_cancels_is_not_called(void **state)
{
    struct bench bench;
    struct end asked, answered, others;
    (void)state;
    bench_init(&bench, 3);
    doubt(&bench, &answered, "item:1");
    row_is("1");
    doubt(&bench, &asked, "item:2");
    doubt(&bench, &others, "item:3");
    doubts_cancel(bench.doubts, &answered);
    doubts_cancel(bench.doubts, &asked);
    doubts_cancel(bench.doubts, &asked);
    assert_int_equal(bench.generation->references, 2);
    all_is_known(&bench);
    fake_no_row();
    fake_no_row();
    assert_int_equal(asked.calls + answered.calls, 0);
    must_end(&others, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void destruction_calls_nobody_whatever_is_under_way(void **state)
{
    struct bench bench;
    struct end asked, answered, foretold, forgotten = {0};
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    doubt(&bench, &answered, "item:1");
    row_is("1");
    doubt(&bench, &asked, "item:2");
    learn(bench.generation, ITEMS, "item:3");
    doubt(&bench, &foretold, "item:3");
    doubts_add(bench.doubts, other, key_make(ITEMS, span_of("item:2")), on_end, &forgotten);
    doubts_forget(bench.doubts, other);
    doubts_destroy(bench.doubts);
    bench.doubts = NULL;
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

static void cancel_the_other(void *arg, struct key key, enum doubt_outcome outcome,
                             struct span other)
{
    on_end(arg, key, outcome, other);
    doubts_cancel(again_bench->doubts, again_end);
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
        doubts_add(bench.doubts, bench.generation, key_make(ITEMS, span_of(key)), cancel_the_other,
                   &ends[i]);
    }
    doubts_forget(bench.doubts, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 1);
    fake_no_row();
    fake_no_row();
    ends[0].calls = ends[1].calls = 0;
    again_end = &ends[1];
    for (int i = 0; i < 2; i++)
        doubts_add(bench.doubts, bench.generation, key_make(ITEMS, span_of("item:5")),
                   cancel_the_other, &ends[i]);
    doubts_forget(bench.doubts, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 0);
    bench_finish(&bench);
}

static void doubt_again(void *arg, struct key key, enum doubt_outcome outcome, struct span other)
{
    on_end(arg, key, outcome, other);
    assert_true(doubts_add(again_bench->doubts, again_bench->generation, key, on_end, again_end));
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
    doubts_add(bench.doubts, bench.generation, key_make(ITEMS, span_of("item:7")), doubt_again,
               &first);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&first, DOUBT_CLEARED);
    assert_int_equal(second.calls, 0);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&second, DOUBT_CLEARED);
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
    unseen_changed(bench.unseen, key_make(0, span_of("item:7")), 900);
    doubt(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, DOUBT_UNSEEN);
    bench_finish(&bench);
}

static void a_row_that_is_still_there_when_all_is_seen_is_confirmed(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 1);
    unseen_changed(bench.unseen, key_make(0, span_of("item:7")), 900);
    doubt(&bench, &end, "item:7");
    row_is("7");
    unseen_learn(bench.unseen, "901:901:");
    all_is_known(&bench);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, DOUBT_CONFIRMED);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generation_given_up_ends_its_doubts_undecided),
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
