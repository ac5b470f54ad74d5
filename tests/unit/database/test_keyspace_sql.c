#include "base/text/identifier.h"
#include "database/keyspace_sql.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct names {
    const char *key, *table, *value, *where, *expression, *ttl;
};

/* A keyspace, and all that is asked about it. */
struct made {
    struct keyspace keyspace;
    struct {
        char *load, *remove, *accepts, *count, *copy;
    } sql;
};

static struct made made(const struct names *names)
{
    struct keyspace keyspace = {.where = (char *)names->where};
    const char *error = NULL;
    assert_int_equal(key_template_parse(&keyspace.key, names->key, &error), 0);
    assert_int_equal(
        table_name_parse(names->table, &keyspace.table_schema, &keyspace.table_name, &error), 0);
    keyspace.value_is_json = names->value && strcmp(names->value, "json") == 0;
    keyspace.value_expression = (char *)names->expression;
    keyspace.ttl_expression = (char *)names->ttl;
    if (names->value && !keyspace.value_is_json)
        assert_int_equal(column_name_parse(names->value, &keyspace.value, &error), 0);
    return (struct made){.keyspace = keyspace,
                         .sql = {.load = keyspace_sql_load(&keyspace, 1000),
                                 .remove = keyspace_sql_remove(&keyspace),
                                 .accepts = keyspace_sql_accepts(&keyspace),
                                 .count = keyspace_sql_count(&keyspace),
                                 .copy = keyspace_sql_copy(&keyspace)}};
}

static void finish(struct made *made)
{
    struct keyspace *keyspace = &made->keyspace;
    free(made->sql.load);
    free(made->sql.remove);
    free(made->sql.accepts);
    free(made->sql.count);
    free(made->sql.copy);
    key_template_finish(&keyspace->key);
    free(keyspace->table_schema);
    free(keyspace->table_name);
    free(keyspace->value);
}

static void must_be(char *sql, const char *wanted)
{
    assert_string_equal(sql, wanted);
    free(sql);
}

/* Of a load: what keeps a large value back stands around the row's own query. */
static void must_load(const struct made *made, const char *keys, const char *query)
{
    char wanted[1000];
    snprintf(wanted, sizeof wanted,
             "SELECT CASE WHEN excess IS NULL THEN v END, %s, excess FROM (SELECT *, CASE WHEN "
             "pg_catalog.pg_column_size(v) > 3 AND pg_catalog.octet_length(v::pg_catalog.text) > "
             "1000 THEN pg_catalog.octet_length(v::pg_catalog.text) END AS excess FROM (%s OFFSET "
             "0) AS r OFFSET 0) AS r",
             keys, query);
    assert_string_equal(made->sql.load, wanted);
}

static void a_plain_keyspace_gives_plain_statements(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"item:{id}", "public.items", "payload", NULL, NULL, NULL});
    must_load(&k, "k1",
              "SELECT \"payload\" AS v, \"id\" AS k1 FROM \"public\".\"items\" WHERE \"id\" = $1");
    assert_string_equal(k.sql.remove, "DELETE FROM \"public\".\"items\" WHERE \"id\" = $1");
    assert_string_equal(k.sql.accepts, "SELECT coalesce((NULL::\"public\".\"items\").\"id\", $1)");
    assert_string_equal(
        k.sql.count,
        "SELECT count(*) FROM \"public\".\"items\" WHERE \"id\" IS DISTINCT FROM NULL");
    assert_string_equal(k.sql.copy, "COPY (SELECT \"id\" FROM \"public\".\"items\" WHERE \"id\" "
                                    "IS DISTINCT FROM NULL) TO STDOUT");
    finish(&k);
}

static void composite_keys_and_where_stand_in_every_statement(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"o:{customer}:{number}", "Orders", "json",
                                         "a = 1 OR b = 2 -- both", NULL, NULL});
    must_load(&k, "k1, k2",
              "SELECT row_to_json(\"orders\".*) AS v, \"customer\" AS k1, \"number\" AS k2 FROM "
              "\"orders\" WHERE \"customer\" = $1 AND \"number\" = $2 AND (a = 1 OR b = "
              "2 -- both\n)");
    assert_string_equal(k.sql.accepts, "SELECT coalesce((NULL::\"orders\").\"customer\", $1), "
                                       "coalesce((NULL::\"orders\").\"number\", $2)");
    assert_string_equal(k.sql.remove, "DELETE FROM \"orders\" WHERE \"customer\" = $1 AND "
                                      "\"number\" = $2 AND (a = 1 OR b = 2 -- both\n)");
    assert_string_equal(
        k.sql.count, "SELECT count(*) FROM \"orders\" WHERE \"customer\" IS DISTINCT FROM NULL AND "
                     "\"number\" IS DISTINCT FROM NULL AND (a = 1 OR b = 2 -- both\n)");
    assert_string_equal(
        k.sql.copy,
        "COPY (SELECT \"customer\", \"number\" FROM \"orders\" WHERE "
        "\"customer\" IS DISTINCT FROM NULL AND \"number\" IS DISTINCT FROM NULL AND (a = "
        "1 OR b = 2 -- both\n)) TO STDOUT");
    finish(&k);
}

static void names_cannot_break_out_of_their_quotes(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"x:{\"a\"\"; DROP\"}", "\"S p\".\"t\"\"x\"",
                                         "\"v\"\" FROM\"", NULL, NULL, NULL});
    must_load(&k, "k1",
              "SELECT \"v\"\" FROM\" AS v, \"a\"\"; DROP\" AS k1 FROM "
              "\"S p\".\"t\"\"x\" WHERE \"a\"\"; DROP\" = $1");
    finish(&k);
}

static void column_names_keep_their_case(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"x:{Größe}", "t", "Wert", NULL, NULL, NULL});
    must_load(&k, "k1", "SELECT \"Wert\" AS v, \"Größe\" AS k1 FROM \"t\" WHERE \"Größe\" = $1");
    finish(&k);
}

static void without_a_value_load_still_tells_of_the_row(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"x:{id}", "t", NULL, NULL, NULL, NULL});
    must_load(&k, "k1", "SELECT NULL AS v, \"id\" AS k1 FROM \"t\" WHERE \"id\" = $1");
    finish(&k);
}

/* A function that returns a set must not take the row away, nor an open comment the rest. */
static void an_expression_stands_in_a_case_and_parentheses(void **state)
{
    (void)state;
    struct made k =
        made(&(struct names){.key = "x:{id}", .table = "t", .expression = "a || '%s' -- both"});
    must_load(&k, "k1",
              "SELECT CASE WHEN true THEN (a || '%s' -- both\n) END AS v, \"id\" AS k1 FROM \"t\" "
              "WHERE \"id\" = $1");
    finish(&k);
}

static void a_ttl_is_computed_beside_the_value_and_comes_last(void **state)
{
    (void)state;
    struct made k =
        made(&(struct names){.key = "x:{id}", .table = "t", .value = "v", .ttl = "a -- b"});
    assert_non_null(strstr(k.sql.load,
                           "SELECT \"v\" AS v, \"id\" AS k1, CASE WHEN true THEN (a -- b\n) "
                           "END AS ttl FROM \"t\" WHERE"));
    assert_non_null(strstr(k.sql.load, ", excess, CASE WHEN pg_catalog.pg_typeof(ttl) = "));
    finish(&k);
}

static void a_list_of_columns_is_a_json_object_of_them(void **state)
{
    char *columns[] = {"a", "b\"c"};
    (void)state;
    struct made k = made(&(struct names){.key = "x:{id}", .table = "t"});
    free(k.sql.load);
    k.keyspace.columns = (struct column_list){columns, 2};
    k.sql.load = keyspace_sql_load(&k.keyspace, 1000);
    must_load(
        &k, "k1",
        "SELECT (SELECT row_to_json(r.*) FROM (SELECT \"a\", \"b\"\"c\") AS r) AS v, \"id\" AS "
        "k1 FROM \"t\" WHERE \"id\" = $1");
    finish(&k);
}

/* A semicolon at its end is left out; what a comment at its end might swallow is in another line.
 */
static void a_query_stands_in_parentheses_under_a_name(void **state)
{
    struct made k = made(&(struct names){"x:{id}", "t", "json", "id > 5 -- few", NULL, NULL});
    (void)state;
    free(k.sql.load);
    free(k.sql.copy);
    k.keyspace.query = (char *)"SELECT '%s' AS id -- all; \n; \n";
    k.sql.load = keyspace_sql_load(&k.keyspace, 1000);
    k.sql.copy = keyspace_sql_copy(&k.keyspace);
    must_load(&k, "k1",
              "SELECT row_to_json(\"query\".*) AS v, \"id\" AS k1 FROM (SELECT '%s' AS id -- all\n)"
              " AS \"query\" WHERE \"id\" = $1 AND (id > 5 -- few\n)");
    assert_string_equal(k.sql.copy,
                        "COPY (SELECT \"id\" FROM (SELECT '%s' AS id -- all\n) AS \"query\" WHERE "
                        "\"id\" IS DISTINCT FROM NULL AND (id > 5 -- few\n)) TO STDOUT");
    must_be(keyspace_sql_rows(&k.keyspace), "(SELECT '%s' AS id -- all\n) AS \"query\"");
    finish(&k);
}

static void to_find_a_row_is_to_ask_for_its_key_alone(void **state)
{
    (void)state;
    struct made k = made(&(struct names){
        .key = "x:{id}:{nr}", .table = "t", .where = "a -- b", .expression = "f(x)"});
    must_be(keyspace_sql_find(&k.keyspace, 1),
            "SELECT NULL, \"id\", \"nr\" FROM \"t\" WHERE \"id\" = $1 "
            "AND \"nr\" = $2 AND (a -- b\n)");
    must_be(keyspace_sql_sample(&k.keyspace, 1),
            "SELECT \"id\", \"nr\" FROM \"t\" WHERE \"id\" IS DISTINCT FROM NULL AND \"nr\" IS "
            "DISTINCT FROM NULL AND "
            "(a -- b\n) LIMIT 1");
    finish(&k);
}

static void a_percent_in_where_is_left_alone(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"x:{id}", "t", "v", "id LIKE '%s%n'", NULL, NULL});
    assert_string_equal(k.sql.remove, "DELETE FROM \"t\" WHERE \"id\" = $1 AND (id LIKE '%s%n'\n)");
    finish(&k);
}

static void shares_of_pages_meet_and_the_last_has_no_end(void **state)
{
    (void)state;
    struct made k =
        made(&(struct names){"item:{id}", "items", "payload", "a OR b -- c", NULL, NULL});
    must_be(
        keyspace_sql_copy_pages(&k.keyspace, 0, 64),
        "COPY (SELECT \"id\" FROM \"items\" WHERE \"id\" IS DISTINCT FROM NULL AND (a OR b -- c\n)"
        " AND ctid < '(64,0)') TO STDOUT");
    must_be(
        keyspace_sql_copy_pages(&k.keyspace, 64, 128),
        "COPY (SELECT \"id\" FROM \"items\" WHERE \"id\" IS DISTINCT FROM NULL AND (a OR b -- c\n)"
        " AND ctid >= '(64,0)' AND ctid < '(128,0)') TO STDOUT");
    must_be(
        keyspace_sql_copy_pages(&k.keyspace, 128, PAGES_END),
        "COPY (SELECT \"id\" FROM \"items\" WHERE \"id\" IS DISTINCT FROM NULL AND (a OR b -- c\n)"
        " AND ctid >= '(128,0)') TO STDOUT");
    must_be(keyspace_sql_copy_pages(&k.keyspace, 0, PAGES_END), k.sql.copy);
    finish(&k);
}

static void packed_shares_meet_and_the_last_has_no_end(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"o:{x}:{y}", "s.items", "payload", NULL, NULL, NULL});
    const enum column_packing packing[] = {PACKS_INTEGER, PACKS_UUID};
    must_be(
        keyspace_sql_pack_pages(&k.keyspace, packing, 40, 60, false),
        "COPY (SELECT (SELECT string_agg(pg_catalog.int8send(\"x\") ||"
        " pg_catalog.uuid_send(\"y\"), '') FROM "
        "\"s\".\"items\" WHERE ctid >= format('(%s,0)', a.page)::tid AND ctid < "
        "format('(%s,0)', CASE WHEN a.page + 16 < 100 THEN a.page + 16 ELSE 100 END)::tid) FROM "
        "generate_series(40, 99, 16) AS a (page)) TO STDOUT (FORMAT binary)");
    must_be(keyspace_sql_pack_pages(&k.keyspace, packing, 100, 1, true),
            "COPY (SELECT (SELECT string_agg(pg_catalog.int8send(\"x\") ||"
            " pg_catalog.uuid_send(\"y\"), '') FROM "
            "\"s\".\"items\" WHERE ctid >= format('(%s,0)', a.page)::tid AND ctid < "
            "format('(%s,0)', CASE WHEN a.page + 16 < 101 THEN a.page + 16 ELSE 4294967295 "
            "END)::tid) FROM generate_series(100, 100, 16) AS a (page)) TO STDOUT (FORMAT binary)");
    finish(&k);
}

/* Inside, the table's name would hide the other's. */
static void what_counts_the_pages_is_not_called_as_the_table_is(void **state)
{
    (void)state;
    struct made k = made(&(struct names){"item:{id}", "a", "payload", NULL, NULL, NULL});
    char *sql =
        keyspace_sql_pack_pages(&k.keyspace, &(enum column_packing){PACKS_INTEGER}, 0, 16, false);
    assert_non_null(strstr(sql, "FROM \"a\" WHERE ctid >= format('(%s,0)', b.page)"));
    assert_non_null(strstr(sql, "AS b (page)"));
    free(sql);
    finish(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_keyspace_gives_plain_statements),
        cmocka_unit_test(composite_keys_and_where_stand_in_every_statement),
        cmocka_unit_test(names_cannot_break_out_of_their_quotes),
        cmocka_unit_test(column_names_keep_their_case),
        cmocka_unit_test(without_a_value_load_still_tells_of_the_row),
        cmocka_unit_test(an_expression_stands_in_a_case_and_parentheses),
        cmocka_unit_test(a_ttl_is_computed_beside_the_value_and_comes_last),
        cmocka_unit_test(a_list_of_columns_is_a_json_object_of_them),
        cmocka_unit_test(a_query_stands_in_parentheses_under_a_name),
        cmocka_unit_test(to_find_a_row_is_to_ask_for_its_key_alone),
        cmocka_unit_test(a_percent_in_where_is_left_alone),
        cmocka_unit_test(shares_of_pages_meet_and_the_last_has_no_end),
        cmocka_unit_test(packed_shares_meet_and_the_last_has_no_end),
        cmocka_unit_test(what_counts_the_pages_is_not_called_as_the_table_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
