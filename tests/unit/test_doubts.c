/* What clears a doubt and what confirms it. Memory that goes too early or never, AddressSanitizer
 * finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "doubts_bench.h"

struct bench {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct doubts *doubts;
};

/* What became of one doubt. */
struct end {
    int calls;
    int keyspace;
    char key[100];
    enum doubt_outcome outcome;
};

static void bench_init(struct bench *bench, unsigned max_at_once)
{
    *bench = (struct bench){.config = config_from_text(bench_text), .generation = generation_of(1)};
    bench->rows.config = bench->config;
    bench->doubts = doubts_create(&(struct doubts_options){&bench->rows, max_at_once});
    fake_pool.params = 1;
    now_ms = 1000;
}

/* Nobody else holds the generation any more. */
static void bench_finish(struct bench *bench)
{
    doubts_destroy(bench->doubts);
    assert_int_equal(bench->generation->references, 1);
    generation_release(bench->generation);
    while (fake_pool.count)
        fake_outcome(PG_DOWN);
    config_destroy(bench->config);
}

static void on_end(void *arg, int keyspace, struct span key, enum doubt_outcome outcome)
{
    struct end *end = arg;
    end->calls++;
    end->keyspace = keyspace;
    end->outcome = outcome;
    assert_true(key.length < sizeof end->key);
    memcpy(end->key, key.at, key.length);
    end->key[key.length] = '\0';
}

static bool try_to_doubt(struct bench *bench, struct end *end, const char *key)
{
    char own[100];
    *end = (struct end){0};
    snprintf(own, sizeof own, "%s", key);
    bool taken = doubts_add(bench->doubts, bench->generation, ITEMS,
                            (struct span){own, strlen(key)}, on_end, end);
    memset(own, 'x', sizeof own); /* the caller's bytes need not outlive the call */
    assert_int_equal(end->calls, 0);
    return taken;
}

static void doubt(struct bench *bench, struct end *end, const char *key)
{
    assert_true(try_to_doubt(bench, end, key));
}

static void must_end(const struct end *end, enum doubt_outcome outcome)
{
    assert_int_equal(end->calls, 1);
    assert_int_equal(end->outcome, outcome);
}

/* A little later everything that was committed by now is known. */
static void all_is_known(struct bench *bench)
{
    now_ms++;
    doubts_known(bench->doubts, bench->generation, now_ms);
}

static void changed(struct bench *bench, const char *key)
{
    doubts_changed(bench->doubts, bench->generation, ITEMS, span_of(key));
}

/* ---- outcomes ---- */

static void a_key_without_a_row_is_cleared(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    doubt(&bench, &end, "item:7");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ITEM);
    assert_string_equal(fake_pool.queries[0].values[0], "7");
    assert_int_equal(bench.generation->references, 2);
    fake_no_row();
    must_end(&end, DOUBT_CLEARED);
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
    doubt(&bench, &end, "item:7");
    row_is("7");
    assert_int_equal(end.calls, 0);
    learn(bench.generation, ITEMS, "item:7");
    changed(&bench, "item:7");
    all_is_known(&bench);
    must_end(&end, DOUBT_CLEARED);
    assert_int_equal(fake_pool.count, 0);
    bench_finish(&bench);
}

static void a_row_that_the_filter_never_learns_is_confirmed_in_the_third_round(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    doubt(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(end.calls, 0);
        assert_int_equal(fake_pool.count, 1);
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, DOUBT_CONFIRMED);
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
    doubt(&bench, &end, "item:7");
    row_is("7");
    all_is_known(&bench);
    row_is("7");
    all_is_known(&bench);
    fake_no_row();
    must_end(&end, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void a_row_that_prints_its_key_otherwise_is_not_that_keys(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    doubt(&bench, &end, "item:007");
    row_is("7");
    must_end(&end, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void a_key_that_is_possible_by_now_costs_no_question(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:7");
    doubt(&bench, &end, "item:7");
    assert_int_equal(fake_pool.count, 0);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&end, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void a_key_that_no_column_can_hold_is_cleared_without_a_question(void **state)
{
    struct bench bench;
    struct end end = {0};
    (void)state;
    bench_init(&bench, 4);
    assert_true(doubts_add(bench.doubts, bench.generation, ITEMS, (struct span){"item:\0", 6},
                           on_end, &end));
    assert_int_equal(end.calls, 0);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&end, DOUBT_CLEARED);
    bench_finish(&bench);
}

static void a_key_with_too_many_splits_is_undecided(void **state)
{
    struct bench bench;
    struct end end = {0};
    (void)state;
    bench_init(&bench, 4);
    assert_true(doubts_add(bench.doubts, bench.generation, ORDERS,
                           span_of("order:::::::::::::::::::::::"), on_end, &end));
    assert_int_equal(end.calls, 0);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&end, DOUBT_UNDECIDED);
    bench_finish(&bench);
}

static void a_database_that_cannot_be_asked_leaves_it_undecided(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    for (enum pg_outcome outcome = PG_REFUSED; outcome <= PG_DOWN; outcome++) {
        doubt(&bench, &end, "item:7");
        fake_outcome(outcome);
        must_end(&end, DOUBT_UNDECIDED);
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
    doubt(&bench, &end, "item:7");
    now_ms = 2000; /* a long question: the row may have come at its very end */
    row_is("7");
    for (int i = 0; i < 10; i++)
        doubts_known(bench.doubts, bench.generation, 1999);
    doubts_known(bench.doubts, bench.generation, 2000);
    assert_int_equal(fake_pool.count, 0);
    doubts_known(bench.doubts, bench.generation, 2001);
    assert_int_equal(fake_pool.count, 1);
    doubts_known(bench.doubts, bench.generation, 3000); /* the second answer is not there yet */
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
    doubt(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        row_is("7");
        doubts_known(bench.doubts, bench.generation, UINT64_MAX);
    }
    must_end(&end, DOUBT_CONFIRMED);
    bench_finish(&bench);
}

static void what_another_generation_knows_is_of_no_use(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    doubt(&bench, &end, "item:7");
    row_is("7");
    doubts_known(bench.doubts, other, UINT64_MAX);
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
    doubt(&bench, &end, "item:7");
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
    must_end(&end, DOUBT_UNDECIDED);
    bench_finish(&bench);
}

static void a_change_spoils_its_round_only(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    doubt(&bench, &end, "item:7");
    for (int round = 0; round < 4; round++) {
        assert_int_equal(end.calls, 0);
        row_is("7");
        if (round == 1)
            changed(&bench, "item:7");
        all_is_known(&bench);
    }
    must_end(&end, DOUBT_CONFIRMED);
    bench_finish(&bench);
}

static void other_rows_changes_do_not_matter(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 4);
    struct generation *other = generation_of(2);
    doubt(&bench, &end, "item:7");
    for (int round = 0; round < 3; round++) {
        changed(&bench, "item:77");
        changed(&bench, "item:8");
        doubts_changed(bench.doubts, bench.generation, ORDERS, span_of("item:7"));
        doubts_changed(bench.doubts, other, ITEMS, span_of("item:7"));
        row_is("7");
        all_is_known(&bench);
    }
    must_end(&end, DOUBT_CONFIRMED);
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
    doubt(&bench, &ends[0], "item:1");
    doubt(&bench, &ends[1], "item:2");
    assert_false(try_to_doubt(&bench, &ends[2], "item:3"));
    assert_int_equal(fake_pool.count, 2);
    assert_int_equal(bench.generation->references, 3);
    fake_no_row();
    doubt(&bench, &ends[2], "item:3");
    fake_no_row();
    fake_no_row();
    for (int i = 0; i < 3; i++)
        must_end(&ends[i], DOUBT_CLEARED);
    bench_finish(&bench);
}

static void with_a_limit_of_none_none_is_taken(void **state)
{
    struct bench bench;
    struct end end;
    (void)state;
    bench_init(&bench, 0);
    assert_false(try_to_doubt(&bench, &end, "item:1"));
    bench_finish(&bench);
}

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
    doubts_add(bench.doubts, other, ITEMS, span_of("item:4"), on_end, &others);
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
    doubts_add(bench.doubts, other, ITEMS, span_of("item:2"), on_end, &forgotten);
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

static void cancel_the_other(void *arg, int keyspace, struct span key, enum doubt_outcome outcome)
{
    on_end(arg, keyspace, key, outcome);
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
        doubts_add(bench.doubts, bench.generation, ITEMS, span_of(key), cancel_the_other, &ends[i]);
    }
    doubts_forget(bench.doubts, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 1);
    fake_no_row();
    fake_no_row();
    ends[0].calls = ends[1].calls = 0;
    again_end = &ends[1];
    for (int i = 0; i < 2; i++)
        doubts_add(bench.doubts, bench.generation, ITEMS, span_of("item:5"), cancel_the_other,
                   &ends[i]);
    doubts_forget(bench.doubts, bench.generation);
    assert_int_equal(ends[0].calls, 1);
    assert_int_equal(ends[1].calls, 0);
    bench_finish(&bench);
}

static void doubt_again(void *arg, int keyspace, struct span key, enum doubt_outcome outcome)
{
    on_end(arg, keyspace, key, outcome);
    assert_true(
        doubts_add(again_bench->doubts, again_bench->generation, keyspace, key, on_end, again_end));
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
    doubts_add(bench.doubts, bench.generation, ITEMS, span_of("item:7"), doubt_again, &first);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&first, DOUBT_CLEARED);
    assert_int_equal(second.calls, 0);
    doubts_known(bench.doubts, bench.generation, 1);
    must_end(&second, DOUBT_CLEARED);
    assert_string_equal(second.key, "item:7");
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_without_a_row_is_cleared),
        cmocka_unit_test(a_row_that_the_filter_learns_in_time_is_cleared),
        cmocka_unit_test(a_row_that_the_filter_never_learns_is_confirmed_in_the_third_round),
        cmocka_unit_test(a_row_that_is_gone_in_the_last_round_is_cleared),
        cmocka_unit_test(a_row_that_prints_its_key_otherwise_is_not_that_keys),
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
        cmocka_unit_test(a_generation_given_up_ends_its_doubts_undecided),
        cmocka_unit_test(a_question_on_its_way_keeps_its_place),
        cmocka_unit_test(who_cancels_is_not_called),
        cmocka_unit_test(destruction_calls_nobody_whatever_is_under_way),
        cmocka_unit_test(a_callback_may_cancel_what_ends_in_the_same_moment),
        cmocka_unit_test(a_callback_may_add_in_the_place_that_was_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
