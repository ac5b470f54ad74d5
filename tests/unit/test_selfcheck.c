/* The course of a self-check, with a database that answers when the test says so. What the sample
 * is made of is in test_selfcheck_sql.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "generation_bench.h"
#include "selfcheck.h"

enum { FIRST_SAMPLE = 10 };

struct bench {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct doubts *doubts;
    struct selfcheck *check;
    int calls;
    bool passed;
    char why[600]; /* "": none */
    uint64_t sampled;
};

static void bench_init(struct bench *bench, unsigned max_at_once)
{
    *bench = (struct bench){.config = config_from_text(bench_text), .generation = generation_of(1)};
    bench->rows.config = bench->config;
    bench->doubts =
        doubts_create(&(struct doubts_options){.rows = &bench->rows, .max_at_once = max_at_once});
    fake_pool.params = 0;
    now_ms = 1000;
}

static void bench_finish(struct bench *bench)
{
    assert_int_equal(fake_pool.count, 0);
    assert_int_equal(bench->generation->references, 1);
    doubts_destroy(bench->doubts);
    generation_release(bench->generation);
    config_destroy(bench->config);
}

static void on_done(void *arg, bool passed, const char *why, uint64_t rows)
{
    struct bench *bench = arg;
    bench->calls++;
    bench->passed = passed;
    bench->sampled = rows;
    snprintf(bench->why, sizeof bench->why, "%s", why ? why : "");
}

/* The samples have no parameters, loads of items have one. */
static void begin(struct bench *bench)
{
    fake_pool.params = 0;
    bench->check = selfcheck_begin(&(struct selfcheck_options){.first_statement = FIRST_SAMPLE,
                                                               .config = bench->config,
                                                               .doubts = bench->doubts,
                                                               .generation = bench->generation,
                                                               .done = on_done,
                                                               .arg = bench});
    assert_int_equal(bench->calls, 0);
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(fake_pool.queries[0].statement, FIRST_SAMPLE + ITEMS);
}

/* So many rows of the keyspace, cells row by row. */
static void sample_is(int keyspace, int columns, int rows, const char *const *cells)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc attributes[2] = {{0}};
    char name[] = "c";
    attributes[0] = attributes[1] = (PGresAttDesc){.name = name, .typid = FAKE_TEXT};
    assert_true(PQsetResultAttrs(result, columns, attributes));
    for (int i = 0; i < rows * columns; i++)
        assert_true(PQsetvalue(result, i / columns, i % columns, (char *)(size_t)cells[i],
                               (int)strlen(cells[i])));
    assert_int_equal(fake_pool.queries[0].statement, FIRST_SAMPLE + keyspace);
    fake_pool.params = keyspace == ITEMS ? 0 : 1; /* of what is asked next */
    fake_answer(&(struct pg_answer){.outcome = PG_DONE, .result = result});
    PQclear(result);
}

#define ITEMS_ARE(...)                                                                             \
    sample_is(ITEMS, 1, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *),                    \
              (const char *[]){__VA_ARGS__})

static void no_orders(void)
{
    sample_is(ORDERS, 2, 0, NULL);
}

static void all_is_known(struct bench *bench)
{
    now_ms++;
    doubts_known(bench->doubts, bench->generation, now_ms);
}

static void must_pass(const struct bench *bench, uint64_t rows)
{
    assert_int_equal(bench->calls, 1);
    assert_true(bench->passed);
    assert_string_equal(bench->why, "");
    assert_int_equal(bench->sampled, rows);
}

static void must_be_undecided(const struct bench *bench)
{
    assert_int_equal(bench->calls, 1);
    assert_false(bench->passed);
    assert_string_equal(bench->why, "");
}

static void must_fail(const struct bench *bench, const char *why)
{
    assert_int_equal(bench->calls, 1);
    assert_false(bench->passed);
    assert_string_equal(bench->why, why);
}

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
    sample_is(ORDERS, 2, 1, (const char *[]){"ann", "7"});
    must_pass(&bench, 4);
    bench_finish(&bench);
}

static void empty_tables_pass(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    sample_is(ITEMS, 1, 0, NULL);
    no_orders();
    must_pass(&bench, 0);
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
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ITEM);
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

static void confirm(struct bench *bench, const char *id)
{
    for (int round = 0; round < 3; round++) {
        assert_int_equal(bench->calls, 0);
        row_is(id);
        all_is_known(bench);
    }
}

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
    assert_int_equal(bench.sampled, 2);
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

/* ---- what stays undecided ---- */

static void without_an_answer_it_is_undecided(void **state)
{
    struct bench bench;
    (void)state;
    for (enum pg_outcome outcome = PG_REFUSED; outcome <= PG_DOWN; outcome++) {
        bench_init(&bench, 4);
        begin(&bench);
        fake_outcome(outcome);
        no_orders();
        must_be_undecided(&bench);
        bench_finish(&bench);
    }
}

static void a_table_that_cannot_be_read_hides_no_fault_of_another(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 4);
    begin(&bench);
    ITEMS_ARE("1");
    fake_pool.params = 1;
    fake_refusal("42P01");
    confirm(&bench, "1");
    must_fail(&bench, "keyspace items: the database has a row of key item:1, the filter has not");
    bench_finish(&bench);
}

static void an_undecided_doubt_leaves_it_undecided_when_the_others_have_ended(void **state)
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
    doubts_forget(bench.doubts, bench.generation);
    must_be_undecided(&bench);
    fake_no_row();
    bench_finish(&bench);
}

static void count_end(void *arg, int keyspace, struct span key, enum doubt_outcome outcome,
                      struct span other)
{
    (void)other;
    (void)keyspace;
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
    assert_true(
        doubts_add(bench.doubts, bench.generation, ITEMS, span_of("item:0"), count_end, &ends));
    row_is("0"); /* and now it waits */
    begin(&bench);
    ITEMS_ARE("1");
    no_orders();
    must_be_undecided(&bench);
    assert_int_equal(ends, 0);
    doubts_forget(bench.doubts, bench.generation);
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
    ITEMS_ARE("1");
    begin(&bench); /* while doubts are */
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
    doubts_destroy(bench.doubts);
    bench.doubts = NULL;
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
        cmocka_unit_test(without_an_answer_it_is_undecided),
        cmocka_unit_test(a_table_that_cannot_be_read_hides_no_fault_of_another),
        cmocka_unit_test(an_undecided_doubt_leaves_it_undecided_when_the_others_have_ended),
        cmocka_unit_test(a_generation_given_up_leaves_it_undecided),
        cmocka_unit_test(when_others_take_all_places_it_is_undecided),
        cmocka_unit_test(every_row_gets_its_turn_though_places_are_few),
        cmocka_unit_test(who_cancels_is_not_called),
        cmocka_unit_test(a_cancelled_ones_answer_may_come_after_everything_else_has_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
