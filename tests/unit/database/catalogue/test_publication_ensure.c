/* The publication is created, completed or left alone; what a person must mend is said with the SQL
 * that mends it; and the application's own changes go on in every case. */
#include "fakes/database.h"

#include "database/catalogue/publication_ensure.h"

#include <errno.h>
#include <pthread.h>

#define ITEMS "- {name: items, key: 'item:{id}', table: items, value: json}\n"
#define ALIVE                                                                                      \
    "- {name: alive, key: 'alive:{id}', table: items, value: json, where: deleted_at IS NULL}\n"
#define PARTS "- {name: parts, key: 'part:{a}:{b}', table: public.parts, value: json}\n"

static const char tables[] =
    "CREATE TABLE items (id int PRIMARY KEY, payload text, nr int NOT NULL DEFAULT 1,"
    "                    deleted_at timestamptz);"
    "INSERT INTO items SELECT n, 'x', n FROM generate_series(1, 9) n;"
    "CREATE TABLE parts (a int, b text, PRIMARY KEY (a, b)) PARTITION BY LIST (a);"
    "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1);"
    "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2);"
    "INSERT INTO parts VALUES (1, 'x'), (2, 'w');"
    "GRANT ALL ON ALL TABLES IN SCHEMA public TO app;"
    "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader";

static struct pg_session *owner; /* a superuser */

static int start(void **state)
{
    start_server(state);
    owner = session_as("postgres");
    run_sql(owner, "CREATE ROLE app LOGIN; CREATE ROLE reader LOGIN");
    return 0;
}

static int stop(void **state)
{
    pg_session_close(owner);
    return stop_server(state);
}

static int fresh_tables(void **state)
{
    (void)state;
    run_sql(owner, "DROP PUBLICATION IF EXISTS nestguard; DROP SCHEMA public CASCADE;"
                   "CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO public");
    run_sql(owner, tables);
    return 0;
}

static int ensure_as(struct pg_session *session, const char *keyspaces, struct pg_error *error)
{
    struct config *config = config_of(keyspaces);
    memset(error, 0, sizeof *error);
    char *inspected;
    int status =
        publication_ensure(session, config, &inspected, &(const struct keyspace *){NULL}, error);
    free(inspected);
    config_destroy(config);
    return status;
}

static void ensured(const char *keyspaces)
{
    struct pg_error error;
    if (ensure_as(owner, keyspaces, &error) < 0)
        fail_msg("%s", error.text);
}

static void expect_cell(const char *sql, const char *wanted)
{
    struct pg_error error;
    PGresult *result = NULL;
    if (pg_session_exec(owner, sql, 0, NULL, &result, &error) < 0)
        fail_msg("%s: %s", sql, error.text);
    assert_string_equal(PQgetvalue(result, 0, 0), wanted);
    PQclear(result);
}

static void expect_entries(const char *wanted)
{
    expect_cell("SELECT coalesce(string_agg(concat(tablename, rowfilter), ', ' ORDER BY 1), '')"
                "  FROM pg_publication_tables WHERE pubname = 'nestguard'",
                wanted);
}

static void expect_the_application_goes_on(void)
{
    struct pg_session *app = session_as("app");
    run_sql(app, "BEGIN; UPDATE items SET payload = 'new'; UPDATE items SET deleted_at = now();"
                 "UPDATE items SET deleted_at = NULL WHERE id < 5; UPDATE items SET id = id + 100;"
                 "DELETE FROM items WHERE id > 105; DELETE FROM items;"
                 "UPDATE parts SET b = b || 'y'; UPDATE parts SET a = 3 - a; DELETE FROM parts;"
                 "ROLLBACK");
    pg_session_close(app);
}

/* It is refused with these words; what it says mends it, maybe in several steps, and the
 * application is not disturbed at any moment. Returns how many steps that took. */
static int mended(const char *keyspaces, const char *words)
{
    static const char mark[] = "; this mends it: ";
    struct pg_error error;
    int steps = 0;
    while (ensure_as(owner, keyspaces, &error) < 0) {
        const char *sql = strstr(error.text, mark);
        if ((steps == 0 && !strstr(error.text, words)) || !sql || steps == 5)
            fail_msg("not \"%s\", or no remedy: %s", words, error.text);
        expect_the_application_goes_on();
        run_sql(owner, sql + strlen(mark));
        steps++;
    }
    expect_the_application_goes_on();
    return steps;
}

static void refused(const char *keyspaces, const char *words)
{
    struct pg_error error;
    assert_int_equal(ensure_as(owner, keyspaces, &error), -EPROTO);
    if (!strstr(error.text, words))
        fail_msg("not \"%s\": %s", words, error.text);
    expect_cell("SELECT count(*) FROM pg_publication WHERE pubname = 'nestguard'", "0");
}

static void it_is_created_with_all_tables_and_then_left_alone(void **state)
{
    static const char keyspaces[] =
        ITEMS PARTS "- {name: again, key: 'again:{id}', table: public.items, value: json}\n";
    char row[200];
    struct pg_error error;
    PGresult *result = NULL;
    (void)state;
    ensured(keyspaces);
    expect_entries("items, parts");
    expect_cell("SELECT pubviaroot AND pubinsert AND pubupdate AND pubdelete AND pubtruncate"
                "  FROM pg_publication",
                "t");
    expect_the_application_goes_on();
    pg_session_exec(owner,
                    "SELECT ROW(p.*, p.xmin, r.*, r.xmin) FROM pg_publication p"
                    "  JOIN pg_publication_rel r ON r.prpubid = p.oid",
                    0, NULL, &result, &error);
    snprintf(row, sizeof row, "%s", PQgetvalue(result, 0, 0));
    PQclear(result);
    ensured(keyspaces);
    expect_cell("SELECT ROW(p.*, p.xmin, r.*, r.xmin) FROM pg_publication p"
                "  JOIN pg_publication_rel r ON r.prpubid = p.oid",
                row);
}

static void tables_that_it_lacks_are_added(void **state)
{
    (void)state;
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE items"
                   " WITH (publish_via_partition_root = true)");
    ensured(ITEMS PARTS);
    expect_entries("items, parts");
    expect_the_application_goes_on();
}

static void tables_of_others_do_not_disturb(void **state)
{
    (void)state;
    run_sql(owner, "CREATE TABLE strangers (x int);"
                   "CREATE PUBLICATION nestguard FOR TABLE strangers");
    ensured(ITEMS);
    expect_entries("items, strangers");
}

static void condition_becomes_the_row_filter(void **state)
{
    (void)state;
    run_sql(owner, "ALTER TABLE items REPLICA IDENTITY FULL");
    ensured(ALIVE PARTS "- {name: again, key: 'again:{id}', table: items, value: json,\n"
                        "   where: \"(items.deleted_at is  null) -- soft\"}\n");
    expect_entries("items(deleted_at IS NULL), parts");
    expect_the_application_goes_on();
    ensured("- {name: alive, key: 'alive:{id}', table: items, value: json,\n"
            "   where: \"items.deleted_at IS NULL -- x\"}\n");
}

static void condition_with_a_comment_can_be_published(void **state)
{
    (void)state;
    run_sql(owner, "ALTER TABLE items REPLICA IDENTITY FULL");
    ensured("- {name: a, key: 'a:{id}', table: items, value: json, where: \"nr > 0 -- )\"}\n");
    expect_entries("items(nr > 0)");
}

static void condition_on_identity_columns_needs_no_full_identity(void **state)
{
    (void)state;
    ensured(
        "- {name: a, key: 'a:{id}', table: items, value: json, where: items.id > 3}\n"
        "- {name: p, key: 'p:{a}', table: parts, value: json, where: \"b <> 'z' AND a > 0\"}\n");
    expect_entries("items(id > 3), parts((b <> 'z'::text) AND (a > 0))");
    expect_the_application_goes_on();
}

static void condition_on_other_columns_waits_for_the_identity(void **state)
{
    (void)state;
    assert_int_equal(mended(ALIVE, "where: the replica identity of table public.items"), 1);
    expect_entries("items(deleted_at IS NULL)");
}

static void key_outside_of_the_identity_waits_for_it(void **state)
{
    (void)state;
    assert_int_equal(mended("- {name: a, key: 'a:{nr}', table: items, value: json}\n",
                            "key: the replica identity of table public.items lacks nr"),
                     1);
    expect_cell("SELECT relreplident FROM pg_class WHERE relname = 'items'", "f");
}

static void an_index_over_the_key_becomes_the_identity(void **state)
{
    (void)state;
    run_sql(owner, "CREATE UNIQUE INDEX \"Nr\" ON items (nr, id);"
                   "CREATE UNIQUE INDEX partial ON items (nr) WHERE id > 3");
    assert_int_equal(mended("- {name: a, key: 'a:{nr}', table: items, value: json}\n", "lacks nr"),
                     1);
    expect_cell("SELECT indexrelid::regclass FROM pg_index WHERE indisreplident", "\"Nr\"");
}

static void an_index_that_may_hold_null_is_none(void **state)
{
    (void)state;
    run_sql(owner, "CREATE UNIQUE INDEX ON items (payload, id)");
    mended("- {name: a, key: 'a:{payload}', table: items, value: json}\n", "lacks payload");
    expect_cell("SELECT relreplident FROM pg_class WHERE relname = 'items'", "f");
}

static void no_identity_is_none_though_there_is_a_primary_key(void **state)
{
    (void)state;
    run_sql(owner, "ALTER TABLE items REPLICA IDENTITY NOTHING");
    assert_int_equal(mended(ITEMS, "lacks id"), 1);
    expect_cell("SELECT relreplident FROM pg_class WHERE relname = 'items'", "d");
}

static void each_partition_has_its_identity(void **state)
{
    struct pg_error error;
    (void)state;
    run_sql(owner, "ALTER TABLE parts_1 REPLICA IDENTITY NOTHING");
    assert_int_equal(mended(PARTS, "replica identity of table public.parts_1 lacks a, b"), 1);
    run_sql(owner, "ALTER TABLE parts_1 REPLICA IDENTITY NOTHING;"
                   "ALTER TABLE parts_2 REPLICA IDENTITY NOTHING");
    assert_int_equal(ensure_as(owner, PARTS, &error), -EPROTO);
    assert_non_null(strstr(error.text, "the SQL that `nestguard check` prints")); /* two lines */
}

static void unlogged_table_is_refused_until_it_is_logged(void **state)
{
    (void)state;
    run_sql(owner, "ALTER TABLE items SET UNLOGGED; ALTER TABLE parts_2 SET UNLOGGED");
    assert_int_equal(mended(ITEMS PARTS, "table public.items is unlogged"), 2);
}

static void what_cannot_be_followed_is_refused_for_good(void **state)
{
    (void)state;
    run_sql(owner, "CREATE TABLE sums (a int, id int GENERATED ALWAYS AS (a + 1) STORED NOT NULL,"
                   "                   UNIQUE (id));"
                   "CREATE TABLE children () INHERITS (items);"
                   "CREATE VIEW views AS SELECT * FROM parts");
    refused(ITEMS, "table public.children inherits from public.items");
    refused("- {name: s, key: 's:{id}', table: sums, value: json}\n", "generated");
    refused("- {name: v, key: 'v:{a}', table: views, value: json}\n", "public.views is a view");
    refused("- {name: g, key: 'g:{a}', table: gone, value: json}\n", "table gone does not exist");
    refused("- {name: c, key: 'c:{gone}', table: parts, value: json}\n", "has no column gone");
    refused(PARTS "- {name: p, key: 'p:{a}', table: parts_1, value: json}\n",
            "table public.parts_1 is a partition of public.parts");
    refused("- {name: a, key: 'a:{a}', table: parts, value: json}\n"
            "- {name: b, key: 'b:{b}', table: parts, value: json, where: a > 0}\n",
            "another condition");
    refused("- {name: a, key: 'a:{a}', table: parts, value: json, where: a > 1}\n"
            "- {name: b, key: 'b:{b}', table: parts, value: json, where: a > 0}\n",
            "another condition");
    refused("- {name: a, key: 'a:{a}', table: parts, value: json, where: random() > 0.5}\n",
            "invalid publication WHERE expression");
    refused("- {name: a, key: 'a:{a}', table: parts, value: json, where: parts IS NOT NULL}\n",
            "invalid publication WHERE expression");
}

static void foreign_partition_is_refused_until_it_is_detached(void **state)
{
    (void)state;
    run_sql(owner, "ALTER TABLE parts DROP CONSTRAINT parts_pkey;"
                   "ALTER TABLE parts_1 REPLICA IDENTITY FULL;"
                   "ALTER TABLE parts_2 REPLICA IDENTITY FULL;"
                   "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
                   "CREATE FOREIGN TABLE far PARTITION OF parts FOR VALUES IN (9) SERVER s;"
                   "GRANT ALL ON far TO app");
    refused(PARTS, "DETACH PARTITION public.far;");
    run_sql(owner, "ALTER TABLE public.parts DETACH PARTITION public.far");
    ensured(PARTS);
    run_sql(owner, "DROP FOREIGN DATA WRAPPER w CASCADE");
}

static void hidden_rows_are_refused(void **state)
{
    struct pg_session *reader = session_as("reader");
    struct pg_error error;
    (void)state;
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE items;"
                   "ALTER TABLE items ENABLE ROW LEVEL SECURITY");
    assert_int_equal(ensure_as(reader, ITEMS, &error), -EPROTO);
    assert_non_null(strstr(error.text, "row-level security"));
    run_sql(owner, "CREATE POLICY all_rows ON items FOR SELECT USING (true)");
    assert_int_equal(ensure_as(reader, ITEMS, &error), -EPROTO); /* it may be another tomorrow */
    run_sql(owner, "ALTER ROLE reader BYPASSRLS");
    assert_int_equal(ensure_as(reader, ITEMS, &error), 0);
    run_sql(owner, "ALTER ROLE reader NOBYPASSRLS");
    pg_session_close(reader);
}

static void a_publication_that_is_wrong_is_not_changed_but_explained(void **state)
{
    static const struct {
        const char *made, *words;
    } cases[] = {
        {"FOR TABLE items WITH (publish = 'insert')", "does not publish: update, delete, truncate"},
        {"FOR TABLE items WITH (publish = 'insert, update, delete')", "truncate"},
        {"FOR TABLE items, parts", "partitions' names"},
        {"FOR TABLE items WHERE (id > 1) WITH (publish_via_partition_root = true)",
         "only rows that meet (id > 1)"},
        {"FOR TABLE items, parts (a, b) WHERE (a > 0) WITH (publish_via_partition_root = true)",
         "only rows that meet (a > 0)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "DROP PUBLICATION IF EXISTS nestguard; CREATE PUBLICATION "
                 "nestguard %s",
                 cases[i].made);
        run_sql(owner, sql);
        assert_in_range(mended(ITEMS PARTS, cases[i].words), 1, 2);
        expect_entries("items, parts");
    }
}

static void a_missing_filter_is_explained(void **state)
{
    (void)state;
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE items;"
                   "ALTER TABLE items REPLICA IDENTITY FULL");
    assert_int_equal(mended(ALIVE, "no condition"), 1);
    expect_entries("items(deleted_at IS NULL)");
}

static void a_column_list_without_the_key_is_explained(void **state)
{
    (void)state;
    run_sql(owner, "CREATE UNIQUE INDEX nrs ON items (nr);"
                   "ALTER TABLE items REPLICA IDENTITY USING INDEX nrs;"
                   "CREATE PUBLICATION nestguard FOR TABLE items (nr, payload);"
                   "ALTER TABLE items ALTER id SET DEFAULT 1");
    struct pg_error error;
    assert_int_equal(ensure_as(owner, ITEMS, &error), -EPROTO); /* the identity comes first */
    run_sql(owner, "ALTER TABLE items REPLICA IDENTITY DEFAULT");
    assert_int_equal(ensure_as(owner, ITEMS, &error), -EPROTO);
    const char *sql = strstr(error.text, "ALTER PUBLICATION");
    assert_non_null(strstr(error.text, "without id, which the key is made of"));
    assert_non_null(sql);
    run_sql(owner, sql);
    ensured(ITEMS);
    ensured("- {name: a, key: 'a:{id}', table: items, value: json}\n");
    expect_the_application_goes_on();
}

static void a_partition_told_as_its_root_is_explained(void **state)
{
    (void)state;
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE parts"
                   " WITH (publish_via_partition_root = true)");
    assert_int_equal(mended("- {name: p, key: 'p:{a}:{b}', table: parts_1, value: json}\n",
                            "is a partition of parts, which publication nestguard has, too"),
                     1);
    expect_entries("parts_1");
}

static void a_publication_of_everything_is_not_used(void **state)
{
    static const char *const made[] = {"FOR ALL TABLES", "FOR TABLES IN SCHEMA public"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pg_error error;
        char sql[200];
        snprintf(sql, sizeof sql,
                 "DROP PUBLICATION IF EXISTS nestguard; CREATE PUBLICATION "
                 "nestguard %s",
                 made[i]);
        run_sql(owner, sql);
        assert_int_equal(ensure_as(owner, ITEMS, &error), -EPROTO);
        assert_non_null(strstr(error.text, "this mends it: publication: nestguard_guard"));
    }
}

static void who_may_not_create_it_is_told_the_sql_for_the_owner(void **state)
{
    static const char mark[] = "; this mends it: ";
    struct pg_session *reader = session_as("reader");
    struct pg_error error;
    (void)state;
    assert_int_equal(ensure_as(reader, ITEMS PARTS, &error), -EPROTO);
    assert_string_equal(error.sqlstate, "42501");
    assert_non_null(strstr(error.text, "permission denied"));
    assert_non_null(strstr(error.text, "CREATE PUBLICATION nestguard FOR TABLE public.items, "
                                       "public.parts WITH (publish_via_partition_root = true);"));
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE items"
                   " WITH (publish_via_partition_root = true)");
    assert_int_equal(ensure_as(reader, ITEMS, &error), 0);
    assert_int_equal(ensure_as(reader, ITEMS PARTS, &error), -EPROTO);
    run_sql(owner, strstr(error.text, mark) + strlen(mark));
    assert_int_equal(ensure_as(reader, ITEMS PARTS, &error), 0);
    pg_session_close(reader);
}

static void sql_that_is_too_long_for_an_error_is_left_to_check(void **state)
{
    struct pg_session *reader = session_as("reader");
    struct pg_error error;
    char keyspaces[1000];
    (void)state;
    snprintf(keyspaces, sizeof keyspaces,
             "- {name: a, key: 'a:{a}', table: parts, value: json, where: \"b <> '%0500d'\"}\n", 7);
    assert_int_equal(ensure_as(reader, keyspaces, &error), -EPROTO);
    assert_non_null(strstr(error.text, "the SQL that `nestguard check` prints"));
    assert_null(strstr(error.text, "CREATE PUBLICATION"));
    pg_session_close(reader);
}

static void *ensure_in_a_thread(void *arg)
{
    struct pg_error error;
    return (void *)(intptr_t)ensure_as(arg, ITEMS PARTS, &error);
}

static void guards_that_start_together_share_it(void **state)
{
    enum { GUARDS = 6 };
    struct pg_session *sessions[GUARDS];
    pthread_t threads[GUARDS];
    (void)state;
    for (size_t i = 0; i < GUARDS; i++)
        sessions[i] = session_as("postgres");
    for (size_t i = 0; i < GUARDS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ensure_in_a_thread, sessions[i]), 0);
    for (size_t i = 0; i < GUARDS; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal((intptr_t)status, 0);
        pg_session_close(sessions[i]);
    }
    expect_entries("items, parts");
}

static void a_lost_session_is_told_from_a_refusal(void **state)
{
    struct pg_session *session = session_as("postgres");
    struct pg_error error;
    (void)state;
    assert_true(pg_session_exec(session, "SELECT pg_terminate_backend(pg_backend_pid())", 0, NULL,
                                NULL, &error) < 0);
    assert_int_equal(ensure_as(session, ITEMS, &error), -ECONNREFUSED);
    pg_session_close(session);
}

#define TEST(name) cmocka_unit_test_setup(name, fresh_tables)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_is_created_with_all_tables_and_then_left_alone),
        TEST(tables_that_it_lacks_are_added),
        TEST(tables_of_others_do_not_disturb),
        TEST(condition_becomes_the_row_filter),
        TEST(condition_with_a_comment_can_be_published),
        TEST(condition_on_identity_columns_needs_no_full_identity),
        TEST(condition_on_other_columns_waits_for_the_identity),
        TEST(key_outside_of_the_identity_waits_for_it),
        TEST(an_index_over_the_key_becomes_the_identity),
        TEST(an_index_that_may_hold_null_is_none),
        TEST(no_identity_is_none_though_there_is_a_primary_key),
        TEST(each_partition_has_its_identity),
        TEST(unlogged_table_is_refused_until_it_is_logged),
        TEST(what_cannot_be_followed_is_refused_for_good),
        TEST(foreign_partition_is_refused_until_it_is_detached),
        TEST(hidden_rows_are_refused),
        TEST(a_publication_that_is_wrong_is_not_changed_but_explained),
        TEST(a_missing_filter_is_explained),
        TEST(a_column_list_without_the_key_is_explained),
        TEST(a_partition_told_as_its_root_is_explained),
        TEST(a_publication_of_everything_is_not_used),
        TEST(who_may_not_create_it_is_told_the_sql_for_the_owner),
        TEST(sql_that_is_too_long_for_an_error_is_left_to_check),
        TEST(guards_that_start_together_share_it),
        TEST(a_lost_session_is_told_from_a_refusal),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
