/* What becomes of keys that would have been rejected: with a database that answers, and a clock
 * that goes, when the test says so. */
#include "keeper/parts/checking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/clock.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"

#include <stdio.h>

enum { ITEMS, KEYSPACES };

struct bench {
    struct config *config;
    struct rows rows;
    struct commit_visibility *visibility;
    struct load_counters counters[KEYSPACES];
    struct spellings *spellings;
    struct generation *generation;
    struct checking checking;
};

static void bench_open(struct bench *bench)
{
    struct filter_options options = {.capacity = 100, .false_positive_rate = 1e-7};
    const char *error;
    memset(&fake_pool, 0, sizeof fake_pool);
    fake_pool.params = 1;
    now_ms = 5000;
    *bench = (struct bench){
        .config =
            config_from_text("cache: redis://127.0.0.1\ndatabase: postgresql://app@db/shop\n"
                             "sync: replication\nkeyspaces:\n  - {name: items, key: \"item:{id}\","
                             " table: items, value: v, enforce: false}\n"),
        .visibility = visibility_create(&(struct visibility_options){.max_remembered = 10}),
        .generation = generation_create(3, KEYSPACES)};
    assert_int_equal(filter_create(&bench->generation->filters[ITEMS], &options, &error), 0);
    bench->rows.config = bench->config;
    bench->spellings = spellings_create(bench->config, bench->counters);
    assert_int_equal(
        checking_open(&bench->checking, &(struct checking_options){.config = bench->config,
                                                                   .rows = &bench->rows,
                                                                   .visibility = bench->visibility,
                                                                   .spellings = bench->spellings,
                                                                   .counters = bench->counters}),
        0);
}

static void on_closed(void *arg)
{
    *(bool *)arg = true;
}

static void bench_close(struct bench *bench)
{
    bool closed = false;
    checking_close(&bench->checking, on_closed, &closed);
    assert_true(closed);
    checking_finish(&bench->checking);
    assert_int_equal(bench->generation->references, 1);
    generation_release(bench->generation);
    spellings_destroy(bench->spellings);
    visibility_destroy(bench->visibility);
    config_destroy(bench->config);
}

static struct key item(const char *text)
{
    return key_make(ITEMS, span_of(text));
}

static void row_is(const char *id)
{
    fake_row(FAKE_TEXT, (const char *[]){"v", id}, 2);
}

/* Everything that was committed by now is known to the filter. */
static void all_is_known(struct bench *bench)
{
    now_ms++;
    fn_checks_known(bench->checking.fn_checks, bench->generation, now_ms);
}

#define COUNTED(bench, name) ((int)counter_read(&(bench)->counters[ITEMS].name))

/* A false reject: its row is there, for the third time that it is looked for. */
static void is_confirmed(struct bench *bench, const char *key, const char *id)
{
    checking_sample(&bench->checking, bench->generation, item(key));
    for (int i = 0; i < 3; i++) {
        row_is(id);
        all_is_known(bench);
    }
}

/* ---- tests ---- */

static void a_key_without_a_row_is_counted_and_nothing_else(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    checking_sample(&bench.checking, bench.generation, item("item:1"));
    fake_no_row();
    assert_int_equal(COUNTED(&bench, shadow_checked), 1);
    assert_int_equal(COUNTED(&bench, false_rejects), 0);
    bench_close(&bench);
}

static void a_row_that_stays_missing_is_a_false_reject(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    is_confirmed(&bench, "item:1", "1");
    assert_int_equal(COUNTED(&bench, shadow_checked), 1);
    assert_int_equal(COUNTED(&bench, false_rejects), 1);
    bench_close(&bench);
}

/* The log tells of it while it is asked for: what the answer said is over. */
static void a_change_meanwhile_proves_nothing(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    checking_sample(&bench.checking, bench.generation, item("item:1"));
    for (int i = 0; i < 3; i++) {
        struct key_change change = change_of_key(CAUSE_INSERTED, item("item:1"));
        change.generation = bench.generation;
        row_is("1");
        if (i == 2)
            checking_hear(&bench.checking, &change);
        all_is_known(&bench);
    }
    assert_int_equal(COUNTED(&bench, false_rejects), 0);
    fn_checks_forget(bench.checking.fn_checks, bench.generation);
    while (fake_pool.count)
        fake_outcome(PG_DOWN);
    bench_close(&bench);
}

static void another_spelling_is_told_as_that(void **state)
{
    struct bench bench;
    struct spelling latest;
    (void)state;
    bench_open(&bench);
    checking_sample(&bench.checking, bench.generation, item("item:01"));
    row_is("1");
    fake_no_row();
    latest = *spellings_latest(bench.spellings, ITEMS);
    assert_string_equal(latest.asked, "item:01");
    assert_string_equal(latest.own, "item:1");
    assert_int_equal(COUNTED(&bench, false_rejects), 0);
    bench_close(&bench);
}

static void what_the_database_does_not_say_is_not_counted(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    checking_sample(&bench.checking, bench.generation, item("item:1"));
    fake_outcome(PG_DOWN);
    assert_int_equal(COUNTED(&bench, shadow_checked), 0);
    bench_close(&bench);
}

static void the_report_has_the_last_self_check(void **state)
{
    struct bench bench;
    struct keyspace_report keyspace = {0};
    struct report report = {.count = 1, .keyspaces = &keyspace};
    struct selfcheck_account account = {.outcome = SELFCHECK_PASSED, .rows = 12};
    (void)state;
    bench_open(&bench);
    checking_report(&bench.checking, &report);
    assert_int_equal(report.check.generation, 0);
    checker_note(bench.checking.checker, 3,
                 &(struct selfcheck_result){
                     .outcome = SELFCHECK_PASSED, .why = "", .count = 1, .keyspaces = &account});
    checking_report(&bench.checking, &report);
    assert_int_equal(report.check.generation, 3);
    assert_int_equal(report.check.time, now_ms);
    assert_int_equal(keyspace.check.rows, 12);
    bench_close(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_without_a_row_is_counted_and_nothing_else),
        cmocka_unit_test(a_row_that_stays_missing_is_a_false_reject),
        cmocka_unit_test(a_change_meanwhile_proves_nothing),
        cmocka_unit_test(another_spelling_is_told_as_that),
        cmocka_unit_test(what_the_database_does_not_say_is_not_counted),
        cmocka_unit_test(the_report_has_the_last_self_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
