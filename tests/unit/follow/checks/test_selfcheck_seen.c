/* What a self-check makes of what it saw, and of what it did not see. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/memory.h"
#include "selfcheck_bench.h"

/* ---- the rows that a keyspace has ---- */

static void where_pages_give_enough_rows_no_more_are_sought(void **state)
{
    struct bench bench;
    char ids[20][12];
    const char *cells[40];
    (void)state;
    bench_init(&bench, 4);
    for (int i = 0; i < 20; i++) {
        snprintf(ids[i], sizeof ids[i], "%d", i);
        char *key = xasprintf("item:%d", i);
        learn(bench.generation, ITEMS, key);
        free(key);
        cells[2 * i] = ids[i];
        cells[2 * i + 1] = "700";
    }
    begin(&bench);
    rows_are(ITEMS, SELFCHECK_SAMPLE, 2, 20, cells);
    no_orders();
    must_pass(&bench, 20);
    bench_finish(&bench);
}

static void rows_that_no_sampled_page_holds_are_looked_at(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    rows_are(ITEMS, SELFCHECK_SAMPLE, 2, 0, NULL);
    rows_are(ITEMS, SELFCHECK_SEEK, 2, 1, (const char *[]){"1", "700"});
    no_orders();
    must_pass(&bench, 1);
    bench_finish(&bench);
}

static void no_row_seen_is_not_passed(void **state)
{
    struct bench bench;
    (void)state;
    for (enum pg_outcome outcome = PG_REFUSED; outcome <= PG_DOWN; outcome++) {
        bench_init(&bench, 4);
        begin(&bench);
        items_are_not_answered(outcome);
        no_orders();
        must_end(&bench, SELFCHECK_NO_ROW);
        assert_int_equal(bench.items.outcome, SELFCHECK_NO_ROW);
        assert_int_equal(bench.orders.outcome, SELFCHECK_EMPTY);
        assert_non_null(strstr(bench.why, "keyspace items: the self-check saw no row"));
        assert_int_equal(bench.timed_out, outcome == PG_TIMEOUT);
        bench_finish(&bench);
    }
}

static void pages_without_a_row_do_not_say_that_there_is_none(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    rows_are(ITEMS, SELFCHECK_SAMPLE, 2, 0, NULL);
    must_be_asked(ITEMS, SELFCHECK_SEEK, false);
    fake_outcome(PG_TIMEOUT);
    no_orders();
    must_end(&bench, SELFCHECK_NO_ROW);
    assert_true(bench.timed_out);
    bench_finish(&bench);
}

static void few_rows_will_do_when_more_are_not_found_in_time(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    rows_are(ITEMS, SELFCHECK_SAMPLE, 2, 1, (const char *[]){"1", "700"});
    must_be_asked(ITEMS, SELFCHECK_SEEK, false);
    fake_outcome(PG_TIMEOUT);
    no_orders();
    must_pass(&bench, 1);
    bench_finish(&bench);
}

static void a_role_that_is_denied_the_systems_columns_is_asked_without_them(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    fake_refusal("42501");
    rows_are(ITEMS, SELFCHECK_PLAIN, 2, 1, (const char *[]){"1", NULL});
    no_orders();
    must_pass(&bench, 1);
    bench_finish(&bench);
}

/* ---- without a log ---- */

/* The snapshot's xmin is 500, its xmax 900. */
static void bench_init_without_log(struct bench *bench)
{
    bench_init(bench, 4);
    assert_int_equal(snapshot_read(&bench->snapshot, "500:900:500"), 0);
    bench->follows_no_log = true;
}

static void item_is(const char *id, const char *xmin)
{
    few_are(ITEMS, 2, 1, (const char *[]){id, xmin});
    no_orders();
}

static void a_row_from_before_the_snapshot_must_be_known(void **state)
{
    static const char *const xmins[] = {"1", "2", "3", "499", "4294967295"};
    struct bench bench;
    (void)state;
    for (size_t i = 0; i < sizeof xmins / sizeof *xmins; i++) {
        bench_init_without_log(&bench);
        begin(&bench);
        item_is("1", xmins[i]);
        confirm(&bench, "1");
        must_fail(&bench,
                  "keyspace items: the database has a row of key item:1, the filter has not");
        snapshot_finish(&bench.snapshot);
        bench_finish(&bench);
    }
}

/* 501 may be a part of 500, which was still running. */
static void a_newer_row_that_is_missing_proves_nothing(void **state)
{
    static const char *const xmins[] = {"0", "500", "501", "899", "900", "2147483000", NULL};
    struct bench bench;
    (void)state;
    for (size_t i = 0; i < sizeof xmins / sizeof *xmins; i++) {
        bench_init_without_log(&bench);
        begin(&bench);
        item_is("1", xmins[i]);
        must_end(&bench, SELFCHECK_UNPROVEN);
        assert_int_equal(bench.items.rows, 0);
        assert_non_null(strstr(bench.why, "keyspace items: the self-check saw no row that was"));
        snapshot_finish(&bench.snapshot);
        bench_finish(&bench);
    }
}

static void a_newer_row_beside_one_that_is_known_does_no_harm(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_without_log(&bench);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    few_are(ITEMS, 2, 3, (const char *[]){"1", "450", "2", "951", "3", "952"});
    no_orders();
    must_pass(&bench, 1);
    snapshot_finish(&bench.snapshot);
    bench_finish(&bench);
}

/* A table that was reloaded behind the generation. */
static void a_newer_row_that_is_known_by_chance_is_not_seen(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_without_log(&bench);
    learn(bench.generation, ITEMS, "item:1");
    begin(&bench);
    few_are(ITEMS, 2, 2, (const char *[]){"1", "950", "2", "951"});
    no_orders();
    must_end(&bench, SELFCHECK_UNPROVEN);
    assert_int_equal(bench.items.rows, 0);
    snapshot_finish(&bench.snapshot);
    bench_finish(&bench);
}

static void rows_that_were_all_updated_since_are_judged_by_most(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_without_log(&bench);
    learn(bench.generation, ITEMS, "item:1");
    learn(bench.generation, ITEMS, "item:2");
    begin(&bench);
    few_are(ITEMS, 2, 3, (const char *[]){"1", "950", "2", "951", "3", "952"});
    no_orders();
    must_pass(&bench, 2);
    snapshot_finish(&bench.snapshot);
    bench_finish(&bench);
}

/* It has no pages, and its rows no xmin. */
static void a_view_is_asked_for_rows_and_judged_by_most(void **state)
{
    for (int known = 0; known < 2; known++) {
        struct bench bench;
        (void)state;
        bench_init_without_log(&bench);
        if (known)
            learn(bench.generation, ITEMS, "item:1");
        begin(&bench);
        fake_refusal("0A000");
        rows_are(ITEMS, SELFCHECK_ROWS, 2, 1, (const char *[]){"1", NULL});
        no_orders();
        if (known)
            must_pass(&bench, 1);
        else
            must_end(&bench, SELFCHECK_UNPROVEN);
        snapshot_finish(&bench.snapshot);
        bench_finish(&bench);
    }
}

static void a_view_without_a_row_is_empty(void **state)
{
    struct bench bench;
    (void)state;
    bench_init_without_log(&bench);
    begin(&bench);
    fake_refusal("0A000");
    rows_are(ITEMS, SELFCHECK_ROWS, 2, 0, NULL);
    no_orders();
    must_pass(&bench, 0);
    snapshot_finish(&bench.snapshot);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_pages_give_enough_rows_no_more_are_sought),
        cmocka_unit_test(rows_that_no_sampled_page_holds_are_looked_at),
        cmocka_unit_test(no_row_seen_is_not_passed),
        cmocka_unit_test(pages_without_a_row_do_not_say_that_there_is_none),
        cmocka_unit_test(few_rows_will_do_when_more_are_not_found_in_time),
        cmocka_unit_test(a_role_that_is_denied_the_systems_columns_is_asked_without_them),
        cmocka_unit_test(a_row_from_before_the_snapshot_must_be_known),
        cmocka_unit_test(a_newer_row_that_is_missing_proves_nothing),
        cmocka_unit_test(a_newer_row_beside_one_that_is_known_does_no_harm),
        cmocka_unit_test(a_newer_row_that_is_known_by_chance_is_not_seen),
        cmocka_unit_test(rows_that_were_all_updated_since_are_judged_by_most),
        cmocka_unit_test(a_view_is_asked_for_rows_and_judged_by_most),
        cmocka_unit_test(a_view_without_a_row_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
