/* A self-check of two keyspaces, with a database that answers when the test says so. */
#ifndef NESTGUARD_TEST_SELFCHECK_BENCH_H
#define NESTGUARD_TEST_SELFCHECK_BENCH_H

#include "follow/checks/selfcheck.h"
#include "generation_bench.h"

struct bench {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct fn_checks *fn_checks;
    struct selfcheck *check;
    struct snapshot snapshot;
    bool follows_no_log;
    int calls;
    enum selfcheck_outcome outcome;
    char why[600];
    struct selfcheck_account items, orders;
    bool timed_out;
};

static inline void bench_init(struct bench *bench, unsigned max_at_once)
{
    *bench = (struct bench){.config = config_from_text(bench_text), .generation = generation_of(1)};
    bench->rows.config = bench->config;
    bench->fn_checks = fn_checks_create(
        &(struct fn_checks_options){.rows = &bench->rows, .max_at_once = max_at_once});
    fake_pool.params = 0;
    now_ms = 1000;
}

static inline void bench_finish(struct bench *bench)
{
    assert_int_equal(fake_pool.count, 0);
    assert_int_equal(bench->generation->references, 1);
    fn_checks_destroy(bench->fn_checks);
    generation_release(bench->generation);
    config_destroy(bench->config);
}

static inline void on_done(void *arg, const struct selfcheck_result *result)
{
    struct bench *bench = arg;
    bench->calls++;
    bench->outcome = result->outcome;
    bench->items = result->keyspaces[ITEMS];
    bench->orders = result->keyspaces[ORDERS];
    bench->timed_out = result->timed_out;
    snprintf(bench->why, sizeof bench->why, "%s", result->why);
}

/* The samples have no parameters, loads of items have one. */
static inline void begin(struct bench *bench)
{
    fake_pool.params = 0;
    bench->check = selfcheck_begin(
        &(struct selfcheck_options){.config = bench->config,
                                    .fn_checks = bench->fn_checks,
                                    .generation = bench->generation,
                                    .snapshot = bench->follows_no_log ? &bench->snapshot : NULL,
                                    .done = on_done,
                                    .arg = bench});
    assert_int_equal(bench->calls, 0);
    assert_int_equal(fake_pool.count, 1);
}

/* What is asked next has parameters when it is about a check. */
static inline void must_be_asked(int keyspace, enum selfcheck_question question, bool last)
{
    assert_int_equal(fake_pool.queries[0].statement,
                     (size_t)keyspace * SELFCHECK_QUESTIONS + question);
    fake_pool.params = last ? 1 : 0;
}

/* So many rows of the keyspace, cells row by row; of each the last is its xmin. */
static inline void rows_are(int keyspace, enum selfcheck_question question, int columns, int rows,
                            const char *const *cells)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[3] = {{0}};
    char name[] = "c";
    for (int i = 0; i < 3; i++)
        attributes[i] = (PGresAttDesc){.name = name, .typid = FAKE_TEXT};
    assert_true(PQsetResultAttrs(result, columns, attributes));
    for (int i = 0; i < rows * columns; i++)
        assert_true(PQsetvalue(result, i / columns, i % columns, (char *)(size_t)cells[i],
                               cells[i] ? (int)strlen(cells[i]) : -1));
    must_be_asked(keyspace, question, keyspace == ORDERS && question == SELFCHECK_SEEK);
    fake_answer(&(struct pg_answer){.outcome = PG_DONE, .result = result});
    PQclear(result);
}

/* There are so few that more are sought: the same are found. */
static inline void few_are(int keyspace, int columns, int rows, const char *const *cells)
{
    rows_are(keyspace, SELFCHECK_SAMPLE, columns, rows, cells);
    rows_are(keyspace, SELFCHECK_SEEK, columns, rows, cells);
}

static inline void items_are(size_t count, const char *const *ids)
{
    const char *cells[20];
    for (size_t i = 0; i < count; i++) {
        cells[2 * i] = ids[i];
        cells[2 * i + 1] = "700";
    }
    few_are(ITEMS, 2, (int)count, cells);
}

#define ITEMS_ARE(...)                                                                             \
    items_are(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

static inline void no_items(void)
{
    few_are(ITEMS, 2, 0, NULL);
}

static inline void no_orders(void)
{
    few_are(ORDERS, 3, 0, NULL);
}

/* Sample and seek get no answer. */
static inline void items_are_not_answered(enum pg_outcome outcome)
{
    fake_outcome(outcome);
    must_be_asked(ITEMS, SELFCHECK_SEEK, false);
    fake_outcome(outcome);
}

static inline void all_is_known(struct bench *bench)
{
    now_ms++;
    fn_checks_known(bench->fn_checks, bench->generation, now_ms);
}

static inline void must_pass(const struct bench *bench, uint64_t items)
{
    assert_int_equal(bench->calls, 1);
    assert_true(selfcheck_is_good(bench->outcome));
    assert_string_equal(bench->why, "");
    assert_int_equal(bench->items.outcome, items ? SELFCHECK_PASSED : SELFCHECK_EMPTY);
    assert_int_equal(bench->items.rows, items);
}

static inline void must_end(const struct bench *bench, enum selfcheck_outcome outcome)
{
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->outcome, outcome);
    assert_false(selfcheck_is_good(outcome));
}

static inline void must_be_undecided(const struct bench *bench)
{
    must_end(bench, SELFCHECK_UNDECIDED);
}

static inline void must_fail(const struct bench *bench, const char *why)
{
    must_end(bench, SELFCHECK_FAILED);
    assert_string_equal(bench->why, why);
}

static inline void confirm(struct bench *bench, const char *id)
{
    for (int round = 0; round < 3; round++) {
        assert_int_equal(bench->calls, 0);
        row_is(id);
        all_is_known(bench);
    }
}

#endif
