/* Rows by cache key, against a database that answers when the test says so. */
#include "database/keyspace_sql.h"
#include "database/rows.h"
#include "database/rows_statements.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fakes/allocator.h"
#include "fakes/config_file.h"
#include "fakes/pg_pool.h"

static const char text[] =
    "cache: redis://127.0.0.1\n"
    "database: postgresql://app@db/shop\n"
    "sync: replication\n"
    "keyspaces:\n"
    "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
    "  - {name: orders, key: \"order:{customer}:{number}\", table: orders, value: v}\n";

enum { ITEMS, ORDERS };
enum {
    LOAD_ITEM,
    LOAD_ITEM_ANEW,
    LOAD_ITEM_LARGE,
    FIND_ITEM,
    CONFIRM_ITEM,
    CONFIRM_ITEM_WAYS, /* there is none: it has one column */
    REMOVE_ITEM,
    ACCEPTS_ITEM,
    LOAD_ORDER,
    CONFIRM_ORDER = 12,
    CONFIRM_ORDER_WAYS,
    REMOVE_ORDER,
    ACCEPTS_ORDER
};

struct bench {
    struct config *config;
    struct rows rows;
    int calls;
    struct row_result result; /* of the last call; error is not valid any more */
    char value[100];
    size_t length;
    char error[100];
    char other[100]; /* spelling; "(none)" */
    bool finds;      /* a row, without regard to its value */
};

static void bench_init(struct bench *bench, int params)
{
    *bench = (struct bench){.config = config_from_text(text)};
    bench->rows.config = bench->config;
    fake_pool.params = params;
}

static void bench_finish(struct bench *bench)
{
    assert_int_equal(fake_pool.count, 0);
    config_destroy(bench->config);
}

static void on_row(void *arg, const struct row_result *result)
{
    struct bench *bench = arg;
    bench->calls++;
    bench->result = *result;
    snprintf(bench->error, sizeof bench->error, "%s", result->error);
    struct span other = result->other_spelling;
    if (other.at)
        snprintf(bench->other, sizeof bench->other, "%.*s", (int)other.length, other.at);
    else
        snprintf(bench->other, sizeof bench->other, "(none)");
    if (!bench->finds)
        assert_int_equal(result->outcome == LOAD_ROW && !result->removed, result->value != NULL);
    if (!result->value)
        return;
    struct span value = blob_span(result->value);
    bench->length = value.length;
    if (value.length >= sizeof bench->value) /* then its beginning */
        value.length = sizeof bench->value - 1;
    memcpy(bench->value, value.at, value.length);
    bench->value[value.length] = '\0';
    blob_release(result->value);
}

static void load(struct bench *bench, int keyspace, const char *key)
{
    char own[100];
    snprintf(own, sizeof own, "%s", key);
    bench->calls = 0;
    struct key asked = key_make(keyspace, (struct span){own, strlen(key)});
    if (bench->finds)
        rows_find(&bench->rows, asked, on_row, bench);
    else
        rows_load(&bench->rows, asked, on_row, bench);
    memset(own, 'x', sizeof own); /* the caller's bytes need not outlive the call */
    assert_int_equal(bench->calls, 0);
}

static void must_end(const struct bench *bench, enum load_outcome outcome)
{
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->result.outcome, outcome);
}

#define ROW(...)                                                                                   \
    fake_row(FAKE_TEXT, (const char *[]){__VA_ARGS__},                                             \
             sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))

/* ---- statements ---- */

static void must_be_sql(const struct pg_statement *statement, char *wanted)
{
    assert_string_equal(statement->sql, wanted);
    free(wanted);
}

/* Only a load is worth preparing. */
static void each_keyspace_has_its_statements(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    struct rows_statements statements;
    rows_statements_init(&statements, bench.config);
    const struct pg_statement *at = statements.at;
    assert_int_equal(statements.count, 16);
    must_be_sql(&at[LOAD_ITEM], keyspace_sql_load(&bench.config->keyspaces[ITEMS], ROW_SMALL));
    assert_ptr_equal(at[LOAD_ITEM_ANEW].sql, at[LOAD_ITEM].sql);
    must_be_sql(&at[LOAD_ITEM_LARGE],
                keyspace_sql_load(&bench.config->keyspaces[ITEMS], bench.config->max_value));
    must_be_sql(&at[FIND_ITEM], keyspace_sql_find(&bench.config->keyspaces[ITEMS], 1));
    must_be_sql(&at[CONFIRM_ITEM], keyspace_sql_find(&bench.config->keyspaces[ITEMS], 1));
    assert_null(at[CONFIRM_ITEM_WAYS].sql);
    must_be_sql(&at[CONFIRM_ORDER_WAYS],
                keyspace_sql_find(&bench.config->keyspaces[ORDERS], ROW_WAYS_MAX));
    must_be_sql(&at[REMOVE_ITEM], keyspace_sql_remove(&bench.config->keyspaces[ITEMS]));
    must_be_sql(&at[ACCEPTS_ITEM], keyspace_sql_accepts(&bench.config->keyspaces[ITEMS]));
    must_be_sql(&at[LOAD_ORDER], keyspace_sql_load(&bench.config->keyspaces[ORDERS], ROW_SMALL));
    must_be_sql(&at[REMOVE_ORDER], keyspace_sql_remove(&bench.config->keyspaces[ORDERS]));
    assert_int_equal(at[REMOVE_ITEM].params, 1);
    assert_int_equal(at[CONFIRM_ORDER].params, 2);
    assert_int_equal(at[CONFIRM_ORDER_WAYS].params, 2 * ROW_WAYS_MAX);
    assert_int_equal(at[ACCEPTS_ORDER].params, 2);
    for (size_t i = 0; i < statements.count; i++)
        assert_int_equal(at[i].always_new,
                         i != LOAD_ITEM && i != LOAD_ORDER && i != CONFIRM_ITEM_WAYS);
    rows_statements_finish(&statements);
    bench_finish(&bench);
}

/* ---- what is known without asking ---- */

static enum load_outcome foretell(const struct bench *bench, int keyspace, struct span key)
{
    return rows_foretell(&bench->rows, key_make(keyspace, key));
}

static void a_key_with_a_zero_byte_is_no_rows_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    assert_int_equal(foretell(&bench, ITEMS, (struct span){"item:1\0", 7}), LOAD_ABSENT);
    assert_int_equal(foretell(&bench, ITEMS, (struct span){"item:\0001", 7}), LOAD_ABSENT);
    assert_int_equal(foretell(&bench, ITEMS, span_of("item:1")), LOAD_ROW);
    assert_int_equal(foretell(&bench, ITEMS, span_of("item:")), LOAD_ROW);
    assert_int_equal(foretell(&bench, ITEMS, span_of("item:\xff")), LOAD_ROW);
    bench_finish(&bench);
}

static void a_key_with_too_many_splits_is_ambiguous(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    assert_int_equal(foretell(&bench, ORDERS, span_of("order:1:2")), LOAD_ROW);
    assert_int_equal(foretell(&bench, ORDERS, span_of("order:::::::::::::::::")), LOAD_ROW);
    assert_int_equal(foretell(&bench, ORDERS, span_of("order::::::::::::::::::")), LOAD_AMBIGUOUS);
    assert_int_equal(foretell(&bench, ORDERS, (struct span){"order::\0:::::::::::::::::", 25}),
                     LOAD_ABSENT);
    bench_finish(&bench);
}

/* ---- loading ---- */

static void a_row_is_asked_for_by_its_columns(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:42");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ITEM);
    assert_string_equal(fake_pool.queries[0].values[0], "42");
    ROW("payload", "42");
    must_end(&bench, LOAD_ROW);
    assert_string_equal(bench.value, "payload");
    assert_string_equal(bench.error, "");
    assert_string_equal(bench.other, "(none)");
    bench_finish(&bench);
}

static void a_value_that_finds_no_memory_is_neither_there_nor_absent(void **state)
{
    enum { LARGE = 40000 };
    char *large = malloc(LARGE + 1);
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    memset(large, 'v', LARGE);
    large[LARGE] = '\0';
    load(&bench, ITEMS, "item:1");
    allocator_fail(LARGE, 1);
    ROW(large, "1");
    assert_true(allocator_failed());
    must_end(&bench, LOAD_REFUSED);
    assert_string_equal(bench.error, "no memory for the row's value");
    free(large);
    bench_finish(&bench);
}

static void no_row_is_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:42");
    fake_no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "(none)");
    bench_finish(&bench);
}

/* To one statement alone. */
static void no_row(void)
{
    fake_rows(FAKE_TEXT, NULL, 0, 2);
}

/* The first may have found the table under a name that leads to another by now. */
static void there_is_none_only_if_whoever_looks_anew_finds_none(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:42");
    no_row();
    assert_int_equal(bench.calls, 0);
    assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ITEM);
    assert_string_equal(fake_pool.queries[0].values[0], "42");
    no_row();
    must_end(&bench, LOAD_ABSENT);
    load(&bench, ITEMS, "item:42");
    no_row();
    ROW(NULL, "042"); /* which has another key */
    must_end(&bench, LOAD_ABSENT);
    load(&bench, ITEMS, "item:42");
    no_row();
    ROW(NULL, "42");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ITEM);
    ROW("payload", "42");
    must_end(&bench, LOAD_ROW);
    load(&bench, ITEMS, "item:42");
    no_row();
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    bench_finish(&bench);
}

/* Without a log a view or a condition may read what is locked behind the snapshot alone. */
static void where_no_log_is_followed_there_is_none_only_if_nothing_was_rewritten(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    bench.config->sync = SYNC_POLL;
    struct rows_statements statements;
    rows_statements_init(&statements, bench.config);
    must_be_sql(&statements.at[CONFIRM_ITEM],
                keyspace_sql_confirm(&bench.config->keyspaces[ITEMS], 1));
    rows_statements_finish(&statements);
    for (int again = 0; again < 3; again++) {
        load(&bench, ITEMS, "item:42");
        no_row();
        for (int i = 0; i < again; i++) {
            assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ITEM);
            ROW("1", NULL);
        }
        assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ITEM);
        assert_string_equal(fake_pool.queries[0].values[0], "42");
        assert_int_equal(bench.calls, 0);
        ROW("0", NULL);
        must_end(&bench, LOAD_ABSENT);
    }
    load(&bench, ITEMS, "item:42"); /* it is there by now */
    no_row();
    ROW("0", "42");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ITEM);
    ROW("payload", "42");
    must_end(&bench, LOAD_ROW);
    load(&bench, ITEMS, "item:42"); /* nobody knows */
    no_row();
    fake_outcome(PG_TIMEOUT);
    must_end(&bench, LOAD_TIMEOUT);
    load(&bench, ITEMS, "item:42");
    no_row();
    while (fake_pool.count)
        ROW("1", NULL);
    must_end(&bench, LOAD_REFUSED);
    bench_finish(&bench);
}

/* 042 = 42 for a bigint, but the row's key is item:42: nothing would ever purge item:042. */
static void another_way_to_write_the_key_is_not_the_rows_key(void **state)
{
    static const char *const keys[] = {"042", "42 ", " 42", "+42", "4", "421", "4\xc2\xb2"};
    struct bench bench;
    char key[20];
    (void)state;
    bench_init(&bench, 1);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        snprintf(key, sizeof key, "item:%s", keys[i]);
        load(&bench, ITEMS, key);
        assert_string_equal(fake_pool.queries[0].values[0], keys[i]);
        ROW("payload", "42");
        no_row();
        must_end(&bench, LOAD_ABSENT);
        assert_string_equal(bench.other, "item:42");
    }
    bench_finish(&bench);
}

static void a_row_whose_key_is_null_is_not_that_of_the_empty_text(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:");
    ROW("payload", NULL);
    no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "(none)");
    load(&bench, ITEMS, "item:");
    ROW("payload", "");
    must_end(&bench, LOAD_ROW);
    bench_finish(&bench);
}

static void every_key_column_must_be_the_rows(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:ann:07");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ORDER);
    assert_string_equal(fake_pool.queries[0].values[0], "ann");
    assert_string_equal(fake_pool.queries[0].values[1], "07");
    ROW("payload", "ann", "7");
    no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "order:ann:7");
    bench_finish(&bench);
}

/* Equal to the column, as its collation has it, and kept apart by the index: `name = $1` finds
 * both.
 */
static void of_rows_that_equal_the_key_the_one_that_has_it_counts(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:Ann");
    fake_rows(FAKE_TEXT, (const char *[]){"small", "ann", "right", "Ann", "large", "ANN"}, 3, 2);
    must_end(&bench, LOAD_ROW);
    assert_string_equal(bench.value, "right");
    assert_int_equal(bench.result.equals, 3);
    load(&bench, ITEMS, "item:aNN");
    fake_rows(FAKE_TEXT, (const char *[]){"small", "ann", "large", "ANN"}, 2, 2);
    no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "item:ann");
    bench_finish(&bench);
}

static void of_rows_with_one_key_the_first_value_counts_in_any_order(void **state)
{
    static const char *const orders[][8] = {{"b", "1", "aa", "1", "ab", "1", "a", "2"},
                                            {"ab", "1", "a", "2", "b", "1", "aa", "1"},
                                            {"aa", "1", "ab", "1", "a", "2", "b", "1"}};
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        load(&bench, ITEMS, "item:1");
        fake_rows(FAKE_TEXT, orders[i], 4, 2);
        must_end(&bench, LOAD_ROW);
        assert_string_equal(bench.value, "aa");
    }
    bench_finish(&bench);
}

static void the_empty_text_may_be_the_other_spelling(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:-");
    ROW("payload", "");
    no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "item:");
    bench_finish(&bench);
}

/* ---- values ---- */

static void null_and_the_empty_text_are_empty_values(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    ROW(NULL, "1");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.length, 0);
    load(&bench, ITEMS, "item:1");
    ROW("", "1");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.length, 0);
    bench_finish(&bench);
}

static void must_give_bytes(struct bench *bench, const char *printed, const char *bytes,
                            size_t length)
{
    load(bench, ITEMS, "item:1");
    fake_row(FAKE_BYTEA, (const char *[]){printed, "1"}, 2);
    must_end(bench, LOAD_ROW);
    assert_int_equal(bench->length, length);
    assert_memory_equal(bench->value, bytes, length);
}

static void a_bytea_is_its_raw_bytes(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    must_give_bytes(&bench, "\\x00ff0d0a41", "\0\xff\r\nA", 5);
    must_give_bytes(&bench, "\\x", "", 0);
    must_give_bytes(&bench, "a\\000\\\\b", "a\0\\b", 4); /* bytea_output = escape */
    must_give_bytes(&bench, NULL, "", 0);
    bench_finish(&bench);
}

static void a_text_that_looks_like_a_bytea_stays_as_it_is(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    ROW("\\x4142", "1");
    assert_string_equal(bench.value, "\\x4142");
    bench_finish(&bench);
}

/* ---- failures ---- */

static void must_ask_of_item(unsigned statement, const char *id)
{
    assert_int_equal(fake_pool.count, 1);
    assert_int_equal(fake_pool.queries[0].statement, statement);
    assert_string_equal(fake_pool.queries[0].values[0], id);
}

/* An error of class 22, after which the texts alone are tried. */
static void load_and_refuse(struct bench *bench, const char *sqlstate)
{
    load(bench, ITEMS, "item:x");
    fake_refusal(sqlstate);
    assert_int_equal(bench->calls, 0);
    must_ask_of_item(ACCEPTS_ITEM, "x");
}

static void a_text_that_the_columns_type_cannot_hold_means_no_row(void **state)
{
    static const char *const states[] = {"22P02", "22003", "22007", "22021", "22P05", "22000"};
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        load_and_refuse(&bench, "22012");
        fake_refusal(states[i]);
        must_end(&bench, LOAD_ABSENT);
    }
    bench_finish(&bench);
}

/* The load is asked once more, for its parameters may have had the types of long ago; then what it
 * says is said of a row. */
static void an_error_though_the_text_is_accepted_says_nothing_of_the_row(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load_and_refuse(&bench, "22003");
    fake_no_row();
    must_ask_of_item(LOAD_ITEM_ANEW, "x");
    fake_refusal("22003");
    must_end(&bench, LOAD_REFUSED);
    assert_string_equal(bench.error, "refused");
    bench_finish(&bench);
}

static void a_load_that_goes_well_when_it_is_new_is_the_answer(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load_and_refuse(&bench, "22P02");
    fake_no_row();
    ROW("payload", "x");
    must_end(&bench, LOAD_ROW);
    load_and_refuse(&bench, "22P02");
    fake_no_row();
    fake_no_row();
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

static void whether_a_text_is_accepted_may_stay_unknown(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load_and_refuse(&bench, "22P02");
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    load_and_refuse(&bench, "22P02");
    fake_outcome(PG_TIMEOUT);
    must_end(&bench, LOAD_TIMEOUT);
    load_and_refuse(&bench, "22P02");
    fake_refusal("42P01");
    must_end(&bench, LOAD_REFUSED);
    bench_finish(&bench);
}

/* Whatever else the server says is no word about the row: it must not be taken for absent. */
static void any_other_error_is_a_refusal(void **state)
{
    static const char *const states[] = {"42P01", "42703", "42501", "53300", "57014", "23514",
                                         "XX000", "40001", "25P02", "",      "2",     "42883"};
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        load(&bench, ITEMS, "item:x");
        fake_refusal(states[i]);
        must_end(&bench, LOAD_REFUSED);
        assert_string_equal(bench.error, "refused");
    }
    bench_finish(&bench);
}

static void no_answer_is_not_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    fake_outcome(PG_TIMEOUT);
    must_end(&bench, LOAD_TIMEOUT);
    load(&bench, ITEMS, "item:1");
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    bench_finish(&bench);
}

static void must_end_early(const struct bench *bench)
{
    fake_answer(&(struct pg_answer){.outcome = PG_TIMEOUT, .early = true});
    must_end(bench, LOAD_TIMEOUT);
    assert_true(bench->result.early);
}

/* Whichever it was of the queries that are asked of a key. */
static void an_answer_that_ended_early_is_told_so(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    must_end_early(&bench);
    load(&bench, ITEMS, "item:1");
    no_row();
    must_end_early(&bench);
    load_and_refuse(&bench, "22P02");
    must_end_early(&bench);
    load(&bench, ITEMS, "item:1");
    fake_outcome(PG_TIMEOUT);
    assert_false(bench.result.early);
    bench_finish(&bench);
}

/* ---- several ways to split a key ---- */

static void fake_none_of_all(void)
{
    assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ORDER_WAYS);
    ROW("0", NULL, NULL);
}

static void must_ask(const char *customer, const char *number)
{
    assert_int_equal(fake_pool.count, 1);
    assert_string_equal(fake_pool.queries[0].values[0], customer);
    assert_string_equal(fake_pool.queries[0].values[1], number);
}

static void all_ways_are_tried_one_after_the_other(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    must_ask("a", "b:c");
    fake_no_row();
    assert_int_equal(bench.calls, 0);
    must_ask("a:b", "c");
    ROW("payload", "a:b", "c");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.result.way, 1);
    bench_finish(&bench);
}

static void another_spelling_found_on_one_way_is_told_if_no_way_has_the_key(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    ROW("payload", "A", "b:c");
    assert_int_equal(bench.calls, 0);
    fake_refusal("22P02");
    fake_refusal("22P02");
    no_row();
    must_end(&bench, LOAD_ABSENT);
    assert_string_equal(bench.other, "order:A:b:c");
    load(&bench, ORDERS, "order:a:b:c");
    ROW("payload", "A", "b:c");
    ROW("payload", "a:b", "c");
    must_end(&bench, LOAD_ROW);
    assert_string_equal(bench.other, "(none)");
    load(&bench, ORDERS, "order:a:b:c");
    ROW("payload", "A", "b:c");
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    assert_string_equal(bench.other, "(none)");
    bench_finish(&bench);
}

static void the_first_way_that_finds_a_row_ends_it(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    ROW("payload", "a", "b:c");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.result.way, 0);
    bench_finish(&bench);
}

/* A text that the first way's column cannot hold says nothing of the second way. */
static void a_way_that_is_impossible_leaves_the_others(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    fake_refusal("22P02");
    must_ask("a", "b:c");
    fake_refusal("22P02");
    must_ask("a:b", "c");
    fake_no_row();
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

/* Neither may "absent" be said when a way was left untried. */
static void a_failure_on_the_way_is_the_answer(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    fake_no_row();
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    load(&bench, ORDERS, "order:a:b:c");
    fake_outcome(PG_TIMEOUT);
    must_end(&bench, LOAD_TIMEOUT);
    bench_finish(&bench);
}

static void sixteen_ways_are_all_tried(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:::::::::::::::::");
    for (int i = 0; i < ROW_WAYS_MAX; i++) {
        assert_int_equal(bench.calls, 0);
        fake_no_row();
    }
    fake_none_of_all();
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

/* What each way's statement has not seen need not have been away at any moment. */
static void a_row_that_moves_from_way_to_way_is_not_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c");
    fake_no_row();
    fake_no_row();
    assert_int_equal(bench.calls, 0);
    assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ORDER_WAYS);
    ROW("0", "a:b", "c");
    assert_int_equal(fake_pool.queries[0].statement, LOAD_ORDER);
    must_ask("a:b", "c");
    fake_no_row(); /* gone again */
    assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ORDER_WAYS);
    fake_rows(FAKE_TEXT, (const char *[]){"0", "A", "b:c", "0", "a", "b:c"}, 2, 3);
    must_ask("a", "b:c");
    ROW("payload", "a", "b:c");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.result.way, 0);

    load(&bench, ORDERS, "order:a:b:c"); /* it is never where it is looked for */
    while (!bench.calls)
        if (fake_pool.queries[0].statement == CONFIRM_ORDER_WAYS)
            ROW("0", "a", "b:c");
        else
            fake_no_row();
    must_end(&bench, LOAD_REFUSED);
    load(&bench, ORDERS, "order:a:b:c");
    fake_no_row();
    fake_no_row();
    fake_outcome(PG_TIMEOUT);
    must_end(&bench, LOAD_TIMEOUT);
    bench_finish(&bench);
}

static void all_ways_are_asked_at_once_but_those_that_no_row_can_have(void **state)
{
    struct bench bench;
    const char *asked[] = {"a", "b:c:d", "a:b:c", "d", "a:b:c", "d"};
    (void)state;
    bench_init(&bench, 2);
    load(&bench, ORDERS, "order:a:b:c:d");
    fake_no_row();
    fake_refusal("22P02");
    fake_refusal("22P02");
    must_ask("a:b:c", "d");
    fake_pool.params = 2 * ROW_WAYS_MAX;
    fake_no_row();
    assert_int_equal(fake_pool.queries[0].statement, CONFIRM_ORDER_WAYS);
    for (int i = 0; i < 6; i++)
        assert_string_equal(fake_pool.queries[0].values[i], asked[i]);
    assert_string_equal(fake_pool.queries[0].values[2 * ROW_WAYS_MAX - 1], "d");
    ROW("0", NULL, NULL);
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

/* ---- removing ---- */

static void must_remove(struct bench *bench, char *word, long long removed)
{
    bench->calls = 0;
    rows_remove(&bench->rows, key_make(ORDERS, span_of("order:a:b:c")), 1, on_row, bench);
    assert_int_equal(bench->calls, 0);
    assert_int_equal(fake_pool.queries[0].statement, REMOVE_ORDER);
    must_ask("a:b", "c");
    fake_pool.removed = word;
    bench->result.value = NULL;
    fake_outcome(PG_DONE);
    assert_int_equal(bench->calls, 1);
    assert_int_equal(bench->result.outcome, LOAD_ROW);
    assert_int_equal(bench->result.removed, removed);
}

static void removing_takes_the_one_way_and_counts_the_rows(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 2);
    must_remove(&bench, (char[]){"1"}, 1);
    must_remove(&bench, (char[]){"2"}, 2);
    bench_finish(&bench);
}

static void on_removed(void *arg, const struct row_result *result)
{
    struct bench *bench = arg;
    bench->calls++;
    bench->result = *result;
}

static void removing_says_when_nothing_went_or_nothing_is_known(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    rows_remove(&bench.rows, key_make(ITEMS, span_of("item:1")), 0, on_removed, &bench);
    fake_pool.removed = (char[]){"0"};
    fake_outcome(PG_DONE);
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.result.removed, 0);
    assert_null(bench.result.value);
    bench.calls = 0;
    rows_remove(&bench.rows, key_make(ITEMS, span_of("item:1")), 0, on_removed, &bench);
    fake_outcome(PG_DOWN);
    must_end(&bench, LOAD_DOWN);
    assert_int_equal(bench.result.removed, 0);
    bench.calls = 0;
    rows_remove(&bench.rows, key_make(ITEMS, span_of("item:1")), 0, on_removed, &bench);
    fake_refusal("23503"); /* a foreign key holds the row */
    must_end(&bench, LOAD_REFUSED);
    bench.calls = 0;
    rows_remove(&bench.rows, key_make(ITEMS, span_of("item:1")), 0, on_removed, &bench);
    fake_refusal("22003"); /* of a trigger, say */
    must_ask_of_item(ACCEPTS_ITEM, "1");
    fake_no_row();
    must_end(&bench, LOAD_REFUSED);
    bench_finish(&bench);
}

/* ---- large values ---- */

static void must_ask_statement(size_t statement)
{
    assert_true(fake_pool.count > 0);
    assert_int_equal(fake_pool.queries[fake_pool.count - 1].statement, statement);
}

static void a_value_above_the_bound_is_never_asked_for(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "67108865");
    must_end(&bench, LOAD_TOO_LARGE);
    bench_finish(&bench);
}

static void a_large_value_is_asked_for_once_more(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "67108864");
    must_ask_statement(LOAD_ITEM_LARGE);
    ROW("large", "1");
    must_end(&bench, LOAD_ROW);
    assert_string_equal(bench.value, "large");
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "2000000");
    fake_large_row("1", "67108865"); /* it has grown meanwhile */
    must_end(&bench, LOAD_TOO_LARGE);
    bench_finish(&bench);
}

/* There need not be memory for it twice. */
static void a_large_value_is_not_copied(void **state)
{
    enum { LARGE = 2000000 };
    char *large = malloc(LARGE + 1);
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    memset(large, 'v', LARGE);
    large[LARGE] = '\0';
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "2000000");
    allocator_fail(LARGE, 1);
    ROW(large, "1");
    assert_false(allocator_failed());
    allocator_fail(0, 0);
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.length, LARGE);
    assert_memory_equal(bench.value, large, sizeof bench.value - 1);
    free(large);
    bench_finish(&bench);
}

static void a_large_row_that_goes_meanwhile_is_absent(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "2000000");
    fake_no_row();
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

static void an_error_in_a_large_value_is_told(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    fake_large_row("1", "2000000");
    fake_refusal("22021");
    must_end(&bench, LOAD_REFUSED);
    bench_finish(&bench);
}

static void large_values_wait_for_each_other(void **state)
{
    struct row_lane lane = {.most = 3000000};
    struct bench bench, others[3];
    (void)state;
    bench_init(&bench, 1);
    bench.rows.lane = &lane;
    for (int i = 0; i < 3; i++) {
        others[i] = bench;
        load(&others[i], ITEMS, "item:1");
    }
    fake_large_row("1", "2000000");
    fake_large_row("1", "2000000");
    fake_large_row("1", "1000000");
    assert_int_equal(fake_pool.count, 1);
    ROW("one", "1");
    must_end(&others[0], LOAD_ROW);
    assert_int_equal(fake_pool.count, 2);
    fake_outcome(PG_DOWN);
    must_end(&others[1], LOAD_DOWN);
    ROW("three", "1");
    must_end(&others[2], LOAD_ROW);
    assert_int_equal(lane.taken, 0);
    bench_finish(&bench);
}

static void to_find_a_row_its_value_is_not_needed(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    bench.finds = true;
    load(&bench, ITEMS, "item:1");
    must_ask_of_item(FIND_ITEM, "1");
    ROW(NULL, "1");
    must_end(&bench, LOAD_ROW);
    assert_null(bench.result.value);
    assert_int_equal(bench.result.equals, 1);
    load(&bench, ITEMS, "item:1");
    fake_no_row();
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

static void the_ttl_of_a_row_comes_behind_its_size(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    load(&bench, ITEMS, "item:1");
    ROW("payload", "1", NULL, "2.5");
    must_end(&bench, LOAD_ROW);
    assert_int_equal(bench.result.ttl_ms, 2500);
    load(&bench, ITEMS, "item:1");
    ROW("payload", "1", NULL, NULL);
    assert_int_equal(bench.result.ttl_ms, ROW_TTL_UNSAID);
    load(&bench, ITEMS, "item:1");
    ROW("payload", "1", NULL);
    assert_int_equal(bench.result.ttl_ms, ROW_TTL_UNSAID);
    bench_finish(&bench);
}

static void an_error_in_finding_a_row_is_not_absent_unless_the_text_is_refused(void **state)
{
    struct bench bench;
    (void)state;
    bench_init(&bench, 1);
    bench.finds = true;
    load_and_refuse(&bench, "22012");
    fake_no_row();
    must_end(&bench, LOAD_REFUSED);
    load_and_refuse(&bench, "22P02");
    fake_refusal("22P02");
    must_end(&bench, LOAD_ABSENT);
    bench_finish(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_keyspace_has_its_statements),
        cmocka_unit_test(a_key_with_a_zero_byte_is_no_rows_key),
        cmocka_unit_test(a_key_with_too_many_splits_is_ambiguous),
        cmocka_unit_test(a_row_is_asked_for_by_its_columns),
        cmocka_unit_test(a_value_that_finds_no_memory_is_neither_there_nor_absent),
        cmocka_unit_test(no_row_is_absent),
        cmocka_unit_test(there_is_none_only_if_whoever_looks_anew_finds_none),
        cmocka_unit_test(where_no_log_is_followed_there_is_none_only_if_nothing_was_rewritten),
        cmocka_unit_test(another_way_to_write_the_key_is_not_the_rows_key),
        cmocka_unit_test(a_row_whose_key_is_null_is_not_that_of_the_empty_text),
        cmocka_unit_test(every_key_column_must_be_the_rows),
        cmocka_unit_test(of_rows_that_equal_the_key_the_one_that_has_it_counts),
        cmocka_unit_test(of_rows_with_one_key_the_first_value_counts_in_any_order),
        cmocka_unit_test(the_empty_text_may_be_the_other_spelling),
        cmocka_unit_test(null_and_the_empty_text_are_empty_values),
        cmocka_unit_test(a_bytea_is_its_raw_bytes),
        cmocka_unit_test(a_text_that_looks_like_a_bytea_stays_as_it_is),
        cmocka_unit_test(a_text_that_the_columns_type_cannot_hold_means_no_row),
        cmocka_unit_test(an_error_though_the_text_is_accepted_says_nothing_of_the_row),
        cmocka_unit_test(a_load_that_goes_well_when_it_is_new_is_the_answer),
        cmocka_unit_test(whether_a_text_is_accepted_may_stay_unknown),
        cmocka_unit_test(any_other_error_is_a_refusal),
        cmocka_unit_test(no_answer_is_not_absent),
        cmocka_unit_test(an_answer_that_ended_early_is_told_so),
        cmocka_unit_test(all_ways_are_tried_one_after_the_other),
        cmocka_unit_test(another_spelling_found_on_one_way_is_told_if_no_way_has_the_key),
        cmocka_unit_test(the_first_way_that_finds_a_row_ends_it),
        cmocka_unit_test(a_way_that_is_impossible_leaves_the_others),
        cmocka_unit_test(a_failure_on_the_way_is_the_answer),
        cmocka_unit_test(sixteen_ways_are_all_tried),
        cmocka_unit_test(a_row_that_moves_from_way_to_way_is_not_absent),
        cmocka_unit_test(all_ways_are_asked_at_once_but_those_that_no_row_can_have),
        cmocka_unit_test(removing_takes_the_one_way_and_counts_the_rows),
        cmocka_unit_test(removing_says_when_nothing_went_or_nothing_is_known),
        cmocka_unit_test(a_value_above_the_bound_is_never_asked_for),
        cmocka_unit_test(a_large_value_is_asked_for_once_more),
        cmocka_unit_test(a_large_value_is_not_copied),
        cmocka_unit_test(a_large_row_that_goes_meanwhile_is_absent),
        cmocka_unit_test(an_error_in_a_large_value_is_told),
        cmocka_unit_test(large_values_wait_for_each_other),
        cmocka_unit_test(to_find_a_row_its_value_is_not_needed),
        cmocka_unit_test(the_ttl_of_a_row_comes_behind_its_size),
        cmocka_unit_test(an_error_in_finding_a_row_is_not_absent_unless_the_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
