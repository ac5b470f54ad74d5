/* What a generation is followed by, found out on a real server. */
#include "fakes/database.h"

#include "build/build_stream.h"

#include <errno.h>
#include <string.h>

static struct pg_session *owner;
static struct config *config;
static struct pg_error error;
static struct built built;
static char conninfo[128];
static struct pg_session_options log_options = {
    .conninfo = conninfo, .application = "test", .connect_timeout = 10};

static int start(void **state)
{
    start_server(state);
    owner = session_as("postgres");
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    config = config_of("  - {name: i, key: \"i:{id}\", table: items, on_miss: pass}\n"
                       "  - {name: n, key: \"n:{id}\", table: notes, on_miss: pass}\n");
    return 0;
}

static int stop(void **state)
{
    config_destroy(config);
    pg_session_close(owner);
    return stop_server(state);
}

static int make_tables(void **state)
{
    (void)state;
    run_sql(owner, "DROP PUBLICATION IF EXISTS nestguard; DROP TABLE IF EXISTS items, notes;"
                   "CREATE TABLE items (id int PRIMARY KEY);"
                   "CREATE TABLE notes (id int PRIMARY KEY);"
                   "ALTER TABLE notes REPLICA IDENTITY FULL");
    return 0;
}

static int end(void **state)
{
    (void)state;
    built_finish(&built);
    return 0;
}

static int survey(void)
{
    const struct keyspace *blamed;
    const struct build_stream_options options = {.whole = config,
                                                 .config = config,
                                                 .blamed = &blamed,
                                                 .session = owner,
                                                 .log = &log_options};
    return build_stream_survey(&built, &options, &error);
}

static uint32_t oid_of(const char *table)
{
    const char *values[] = {table};
    PGresult *result;
    assert_int_equal(
        pg_session_exec(owner, "SELECT to_regclass($1)::oid", 1, values, &result, &error), 0);
    uint32_t oid = (uint32_t)strtoul(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return oid;
}

static void the_publication_is_made_and_the_tables_are_found(void **state)
{
    (void)state;
    assert_int_equal(survey(), 0);
    assert_int_equal(built.tables[0], oid_of("items"));
    assert_int_equal(built.tables[1], oid_of("notes"));
    assert_string_equal(built.identities, "df");
    assert_non_null(strchr(built.fingerprint, '@'));
}

static void what_is_not_altered_has_the_same_fingerprint(void **state)
{
    (void)state;
    assert_int_equal(survey(), 0);
    char *before = strdup(built.fingerprint);
    built_finish(&built);
    assert_int_equal(survey(), 0);
    assert_string_equal(built.fingerprint, before);
    built_finish(&built);
    run_sql(owner, "ALTER TABLE notes REPLICA IDENTITY DEFAULT");
    assert_int_equal(survey(), 0);
    assert_string_not_equal(built.fingerprint, before);
    free(before);
}

static void a_table_that_is_not_there_is_named(void **state)
{
    (void)state;
    run_sql(owner, "DROP TABLE notes");
    assert_int_equal(survey(), -EPROTO);
    assert_non_null(strstr(error.text, "notes"));
    assert_null(built.tables);
}

static void a_publication_that_leaves_something_out_is_refused(void **state)
{
    (void)state;
    run_sql(owner, "CREATE PUBLICATION nestguard FOR TABLE items, notes WITH (publish = 'insert')");
    assert_int_equal(survey(), -EPROTO);
    assert_non_null(strstr(error.text, "does not publish"));
}

static void the_stream_is_of_the_server_that_was_asked(void **state)
{
    const struct keyspace *blamed;
    const struct build_stream_options options = {.whole = config,
                                                 .config = config,
                                                 .blamed = &blamed,
                                                 .session = owner,
                                                 .log = &log_options};
    (void)state;
    assert_int_equal(survey(), 0);
    assert_int_equal(build_stream_open(&built, &options, &error), 0);
    assert_true(pg_server_is_same(pg_stream_server(built.stream), pg_session_server(owner), true));
    assert_true(strlen(pg_stream_snapshot(built.stream)) > 0);
}

static void a_server_that_is_not_there_is_no_stream(void **state)
{
    struct pg_session_options nobody = log_options;
    char nowhere[64];
    snprintf(nowhere, sizeof nowhere, "host=127.0.0.1 port=%d", free_port());
    nobody.conninfo = nowhere;
    const struct keyspace *blamed;
    const struct build_stream_options options = {
        .whole = config, .config = config, .blamed = &blamed, .session = owner, .log = &nobody};
    (void)state;
    assert_int_equal(build_stream_open(&built, &options, &error), -ECONNREFUSED);
    assert_null(built.stream);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_publication_is_made_and_the_tables_are_found,
                                        make_tables, end),
        cmocka_unit_test_setup_teardown(what_is_not_altered_has_the_same_fingerprint, make_tables,
                                        end),
        cmocka_unit_test_setup_teardown(a_table_that_is_not_there_is_named, make_tables, end),
        cmocka_unit_test_setup_teardown(a_publication_that_leaves_something_out_is_refused,
                                        make_tables, end),
        cmocka_unit_test_setup_teardown(the_stream_is_of_the_server_that_was_asked, make_tables,
                                        end),
        cmocka_unit_test_setup_teardown(a_server_that_is_not_there_is_no_stream, make_tables, end),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
