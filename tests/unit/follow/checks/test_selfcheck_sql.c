/* The sample's SQL, on a real server: it must be valid for any table, give only rows that the
 * keyspace has, and cost the same on a large table as on a small one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <libpq-fe.h>
#include <stdio.h>

#include "base/memory.h"
#include "fakes/config_file.h"
#include "fakes/servers.h"
#include "follow/checks/selfcheck.h"

enum { LARGE = 1000000, ROWS_MAX = 400, PAGES_MAX = 250 };

static struct server server;
static PGconn *pq;

static PGresult *query(const char *sql)
{
    PGresult *result = PQexec(pq, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s\n%s", sql, PQerrorMessage(pq));
    return result;
}

static void run(const char *sql)
{
    PQclear(query(sql));
}

static long number(const char *sql)
{
    PGresult *result = query(sql);
    long value = strtol(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return value;
}

/* Of a keyspace with these settings. */
static char *sql_of(const char *settings, enum selfcheck_question question)
{
    char *text = xasprintf("cache: redis://127.0.0.1\n"
                           "database: postgresql://app@db/shop\n"
                           "sync: none\n"
                           "keyspaces:\n"
                           "  - {name: items, on_miss: pass, %s}\n",
                           settings);
    struct config *config = config_from_text(text);
    char *sql = selfcheck_sql(&config->keyspaces[0], question);
    config_destroy(config);
    free(text);
    return sql;
}

static PGresult *asked(const char *settings, enum selfcheck_question question)
{
    char *sql = sql_of(settings, question);
    PGresult *result = query(sql);
    free(sql);
    return result;
}

static PGresult *sample(const char *settings)
{
    return asked(settings, SELFCHECK_SAMPLE);
}

static int sought(const char *settings)
{
    PGresult *result = asked(settings, SELFCHECK_SEEK);
    int rows = PQntuples(result);
    PQclear(result);
    return rows;
}

static int sampled(const char *settings)
{
    PGresult *result = sample(settings);
    int rows = PQntuples(result);
    PQclear(result);
    return rows;
}

/* How many pages the server looked at, by its own account. */
static long pages_read_by(const char *settings, enum selfcheck_question question)
{
    char *sql = sql_of(settings, question);
    char *explain = xasprintf("EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) %s", sql);
    PGresult *result = query(explain);
    long pages = 0;
    for (int i = 0; i < 2; i++) { /* the first of each is the whole plan's */
        const char *name = i ? "\"Shared Read Blocks\": " : "\"Shared Hit Blocks\": ";
        const char *at = strstr(PQgetvalue(result, 0, 0), name);
        assert_non_null(at);
        pages += strtol(at + strlen(name), NULL, 10);
    }
    PQclear(result);
    free(explain);
    free(sql);
    return pages;
}

static long pages_read(const char *settings)
{
    return pages_read_by(settings, SELFCHECK_SAMPLE);
}

static int start(void **state)
{
    char conninfo[128];
    (void)state;
    postgres_create(&server);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    pq = PQconnectdb(conninfo);
    assert_int_equal(PQstatus(pq), CONNECTION_OK);
    run("SET client_min_messages = warning");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    PQfinish(pq);
    server_destroy(&server);
    return 0;
}

/* ---- which rows ---- */

static void an_empty_table_gives_no_row(void **state)
{
    (void)state;
    run("CREATE TABLE nothing (id int)");
    assert_int_equal(sampled("key: \"item:{id}\", table: nothing"), 0);
}

static void all_of_a_small_table_is_looked_at(void **state)
{
    (void)state;
    run("CREATE TABLE small AS SELECT id FROM generate_series(1, 50) id");
    assert_int_equal(sampled("key: \"item:{id}\", table: small"), 100); /* each row twice */
}

static void composite_keys_come_in_the_templates_order(void **state)
{
    (void)state;
    run("CREATE TABLE orders (number int, customer text, other int)");
    run("INSERT INTO orders VALUES (7, 'ann', 1)");
    PGresult *result = sample("key: \"order:{customer}:{number}\", table: public.orders");
    assert_int_equal(PQntuples(result), 2);
    assert_int_equal(PQnfields(result), 3); /* and the row's xmin */
    assert_string_equal(PQgetvalue(result, 0, 0), "ann");
    assert_string_equal(PQgetvalue(result, 0, 1), "7");
    PQclear(result);
}

static void rows_that_the_keyspace_has_not_are_left_out(void **state)
{
    (void)state;
    run("CREATE TABLE soft (id int, gone bool)");
    run("INSERT INTO soft SELECT i, i % 10 > 0 FROM generate_series(1, 1000) i");
    run("INSERT INTO soft SELECT NULL, false FROM generate_series(1, 1000)");
    PGresult *result =
        sample("key: \"item:{id}\", table: soft, where: \"NOT soft.gone OR false -- ended\"");
    assert_int_equal(PQntuples(result), 200); /* the 100 that there are, from either part */
    for (int i = 0; i < PQntuples(result); i++) {
        assert_false(PQgetisnull(result, i, 0));
        assert_int_equal(strtol(PQgetvalue(result, i, 0), NULL, 10) % 10, 0);
    }
    PQclear(result);
}

static void any_name_is_quoted(void **state)
{
    (void)state;
    run("CREATE SCHEMA \"S'ch\\ema\"");
    run("CREATE TABLE \"S'ch\\ema\".\"T\"\"a%sble\" (\"I\"\"d%s\" int)");
    run("INSERT INTO \"S'ch\\ema\".\"T\"\"a%sble\" VALUES (5)");
    const char *settings = "key: 'item:{\"I\"\"d%s\"}', "
                           "table: '\"S''ch\\ema\".\"T\"\"a%sble\"', where: '\"I\"\"d%s\" % 5 = 0'";
    assert_int_equal(sampled(settings), 2);
    run("SET standard_conforming_strings = off");
    run("SET escape_string_warning = off");
    assert_int_equal(sampled(settings), 2);
    run("RESET standard_conforming_strings");
}

static void partitions_and_heirs_are_part_of_their_table(void **state)
{
    (void)state;
    run("CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)");
    run("CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (10)");
    run("CREATE TABLE high PARTITION OF parts FOR VALUES FROM (10) TO (1000000)"
        " PARTITION BY HASH (id)");
    run("CREATE TABLE high_0 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 0)");
    run("CREATE TABLE high_1 PARTITION OF high FOR VALUES WITH (MODULUS 2, REMAINDER 1)");
    run("INSERT INTO parts SELECT generate_series(0, 19)");
    assert_int_equal(sampled("key: \"item:{id}\", table: parts"), 40);
    run("CREATE TABLE parent (id int)");
    run("CREATE TABLE heir () INHERITS (parent)");
    run("INSERT INTO heir SELECT generate_series(0, 19)");
    assert_int_equal(sampled("key: \"item:{id}\", table: parent"), 40);
}

/* ---- at what price ---- */

/* Quarters of the table that the sample reached. With some 16 pages of each, it misses one about
 * once in ten million times. */
static unsigned quarters(PGresult *result)
{
    unsigned seen = 0;
    for (int i = 0; i < PQntuples(result); i++)
        seen |= 1u << (strtol(PQgetvalue(result, i, 0), NULL, 10) * 4 / (LARGE + 1));
    return seen;
}

static void a_large_tables_sample_is_small_and_from_all_over_it(void **state)
{
    (void)state;
    run("CREATE TABLE large AS SELECT id, 'payload ' || id AS payload, id > 0 AS gone"
        " FROM generate_series(1, 1000000) id");
    assert_true(number("SELECT pg_relation_size('large') / 8192") > 20L * PAGES_MAX);
    PGresult *result = sample("key: \"item:{id}\", table: large");
    assert_in_range(PQntuples(result), 200, ROWS_MAX);
    assert_int_equal(quarters(result), 0xf);
    assert_string_equal(PQgetvalue(result, PQntuples(result) - 1, 0), "100"); /* the beginning */
    PQclear(result);
    assert_in_range(pages_read("key: \"item:{id}\", table: large"), 10, PAGES_MAX);
}

static void a_table_of_which_nothing_is_wanted_is_not_read_through(void **state)
{
    const char *settings = "key: \"item:{id}\", table: large, where: NOT gone";
    (void)state;
    assert_int_equal(sampled(settings), 0);
    assert_in_range(pages_read(settings), 10, PAGES_MAX);
    run("CREATE INDEX ON large (id)");
    run("ANALYZE large");
    assert_in_range(pages_read(settings), 10, PAGES_MAX);
    assert_in_range(pages_read("key: \"item:{id}\", table: large"), 10, PAGES_MAX);
}

static void a_large_partitioned_tables_sample_is_small_too(void **state)
{
    (void)state;
    run("CREATE TABLE wide (id int, gone bool) PARTITION BY HASH (id)");
    for (int i = 0; i < 4; i++) {
        char *sql = xasprintf("CREATE TABLE wide_%d PARTITION OF wide"
                              " FOR VALUES WITH (MODULUS 4, REMAINDER %d)",
                              i, i);
        run(sql);
        free(sql);
    }
    run("INSERT INTO wide SELECT id, true FROM generate_series(1, 1000000) id");
    assert_in_range(sampled("key: \"item:{id}\", table: wide"), 200, ROWS_MAX);
    assert_in_range(pages_read("key: \"item:{id}\", table: wide"), 10, PAGES_MAX);
    assert_in_range(pages_read("key: \"item:{id}\", table: wide, where: NOT gone"), 10, PAGES_MAX);
}

/* ---- rows by their condition ---- */

static void a_row_that_no_page_of_the_sample_holds_is_found(void **state)
{
    (void)state;
    assert_int_equal(sought("key: \"item:{id}\", table: nothing"), 0);
    assert_int_equal(sought("key: \"item:{id}\", table: small"), 50);
    assert_int_equal(sought("key: \"item:{id}\", table: large, where: id = 500000"), 1);
    assert_int_equal(sought("key: \"item:{id}\", table: large, where: id > 999990"), 10);
    assert_int_equal(sought("key: \"item:{id}\", table: large, where: NOT gone"), 0);
    assert_int_equal(sought("key: \"item:{id}\", table: wide, where: id = 500000"), 1);
    assert_int_equal(sought("key: \"item:{id}\", table: large"), 100);
}

static void not_always_the_same_rows_are_sought(void **state)
{
    (void)state;
    unsigned seen = 0;
    for (int i = 0; i < 1000 && seen != 0xf; i++) {
        PGresult *result = asked("key: \"item:{id}\", table: large", SELFCHECK_SEEK);
        seen |= quarters(result);
        PQclear(result);
    }
    assert_int_equal(seen, 0xf);
}

static void an_index_on_the_condition_is_used(void **state)
{
    const char *settings = "key: \"item:{id}\", table: large, where: id % 100000 = 7";
    (void)state;
    run("CREATE INDEX rare ON large (id) WHERE id % 100000 = 7");
    run("ANALYZE large");
    assert_int_equal(sought(settings), 10);
    assert_in_range(pages_read_by(settings, SELFCHECK_SEEK), 5, 200);
}

static void what_a_row_proves_goes_by_the_condition(void **state)
{
    static const struct {
        const char *where;
        bool proves;
    } cases[] = {{"id > 0 AND id IN (1, 2) OR lower('a') = 'a'", true},
                 {"now() > timestamptz '2020-01-01'", false},
                 {"CURRENT_DATE > date '2020-01-01'", false},
                 {"EXISTS (SELECT FROM nothing) OR true", false}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *settings =
            xasprintf("key: \"item:{id}\", table: small, where: \"%s\"", cases[i].where);
        for (enum selfcheck_question question = 0; question <= SELFCHECK_SEEK; question++) {
            PGresult *result = asked(settings, question);
            assert_true(PQntuples(result) > 0);
            assert_int_equal(!PQgetisnull(result, 0, 1), cases[i].proves);
            PQclear(result);
        }
        free(settings);
    }
    assert_int_equal(number("SELECT count(DISTINCT xmin::text) FROM small"), 1);
    PGresult *result = sample("key: \"item:{id}\", table: small");
    assert_int_equal(strtol(PQgetvalue(result, 0, 1), NULL, 10), number("SELECT xmin FROM small"));
    PQclear(result);
}

static void a_role_that_may_read_some_columns_only_has_its_question(void **state)
{
    const char *settings = "key: \"item:{id}\", table: soft, where: NOT gone";
    (void)state;
    run("CREATE ROLE partly; GRANT SELECT (id, gone) ON soft TO partly; SET ROLE partly");
    char *sql = sql_of(settings, SELFCHECK_SAMPLE);
    PGresult *result = PQexec(pq, sql);
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "42501");
    PQclear(result);
    free(sql);
    result = asked(settings, SELFCHECK_PLAIN);
    assert_int_equal(PQntuples(result), 200);
    assert_true(PQgetisnull(result, 0, 1));
    PQclear(result);
    run("RESET ROLE");
}

static void a_view_has_no_sample_but_rows(void **state)
{
    const char *settings = "key: \"item:{id}\", table: seen, where: NOT gone";
    (void)state;
    run("CREATE VIEW seen AS SELECT id, gone FROM soft");
    char *sql = sql_of(settings, SELFCHECK_SAMPLE);
    PGresult *result = PQexec(pq, sql);
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "0A000");
    PQclear(result);
    free(sql);
    result = asked(settings, SELFCHECK_ROWS);
    assert_true(PQntuples(result) > 0);
    assert_int_equal(PQnfields(result), 2);
    assert_true(PQgetisnull(result, 0, 1));
    PQclear(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_table_gives_no_row),
        cmocka_unit_test(all_of_a_small_table_is_looked_at),
        cmocka_unit_test(composite_keys_come_in_the_templates_order),
        cmocka_unit_test(rows_that_the_keyspace_has_not_are_left_out),
        cmocka_unit_test(any_name_is_quoted),
        cmocka_unit_test(partitions_and_heirs_are_part_of_their_table),
        cmocka_unit_test(a_large_tables_sample_is_small_and_from_all_over_it),
        cmocka_unit_test(a_table_of_which_nothing_is_wanted_is_not_read_through),
        cmocka_unit_test(a_large_partitioned_tables_sample_is_small_too),
        cmocka_unit_test(a_row_that_no_page_of_the_sample_holds_is_found),
        cmocka_unit_test(not_always_the_same_rows_are_sought),
        cmocka_unit_test(an_index_on_the_condition_is_used),
        cmocka_unit_test(what_a_row_proves_goes_by_the_condition),
        cmocka_unit_test(a_role_that_may_read_some_columns_only_has_its_question),
        cmocka_unit_test(a_view_has_no_sample_but_rows),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
