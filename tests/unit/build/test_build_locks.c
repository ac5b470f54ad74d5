/* Whether what a build read is what its snapshot sees, as a real server says it to a role that may
 * read some columns only: nothing is locked for it before it is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "build/build_locks.h"
#include "build/build_session.h"
#include "fakes/config_file.h"
#include "fakes/servers.h"

static struct server server;
static struct pg_session *owner, *session;
static struct config *config;
static struct pg_error error;
static struct build_wait wait;
static atomic_bool stop_flag;
static char *exported;
static char *queried; /* stays NULL's array: there is no query */
static struct build_locks locks;
static const struct keyspace *blamed;

static void run(struct pg_session *on, const char *sql)
{
    if (pg_session_exec(on, sql, 0, NULL, NULL, &error))
        fail_msg("%s\n%s", sql, error.text);
}

/* Several, with a semicolon between each and the next. */
static void run_each(struct pg_session *on, const char *script)
{
    char *copy = strdup(script), *rest = copy;
    for (char *sql; (sql = strtok_r(rest, ";", &rest));)
        run(on, sql);
    free(copy);
}

static struct pg_session *open_as(const char *role)
{
    char conninfo[128];
    struct pg_session *opened;
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=%s dbname=postgres",
             server.port, role);
    struct pg_session_options options = {
        .conninfo = conninfo, .application = "test", .connect_timeout = 10};
    if (pg_session_open(&opened, &options, &error))
        fail_msg("%s", error.text);
    return opened;
}

static int start(void **state)
{
    (void)state;
    postgres_create(&server);
    owner = open_as("postgres");
    run(owner, "CREATE ROLE reader LOGIN");
    session = open_as("reader");
    build_wait_init(&wait);
    config = config_from_text("cache: redis://127.0.0.1\n"
                              "database: postgresql://app@db/shop\n"
                              "sync: poll\n"
                              "keyspaces:\n"
                              "  - {name: p, key: \"p:{id}\", table: parts, on_miss: pass}\n");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    config_destroy(config);
    build_wait_finish(&wait);
    pg_session_close(session);
    pg_session_close(owner);
    server_destroy(&server);
    return 0;
}

/* `parts` with its partitions low and high. */
static int make_parts(void **state)
{
    (void)state;
    run(owner, "DROP TABLE IF EXISTS parts, low, high");
    run(owner, "CREATE TABLE parts (id int, secret text) PARTITION BY RANGE (id)");
    run(owner, "CREATE TABLE low PARTITION OF parts FOR VALUES FROM (0) TO (100)");
    run(owner, "CREATE TABLE high PARTITION OF parts FOR VALUES FROM (100) TO (200)");
    run(owner, "GRANT SELECT (id) ON parts TO reader");
    locks = (struct build_locks){.config = config,
                                 .stop = &stop_flag,
                                 .wait = &wait,
                                 .queried = &queried,
                                 .blamed = &blamed};
    return 0;
}

static int end(void **state)
{
    (void)state;
    run(session, "ROLLBACK");
    free(exported);
    exported = NULL;
    return 0;
}

/* The transaction under a snapshot of before, whose maker is gone by the time of the changes. */
static void begin_exported(void)
{
    struct pg_session *slot = open_as("postgres");
    assert_int_equal(build_session_begin(slot, &error), 0);
    assert_int_equal(build_session_export(slot, &exported, &error), 0);
    locks.exported = exported;
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    pg_session_close(slot);
}

static int compare(void)
{
    return build_locks_compare(&locks, session, &error);
}

static void what_is_not_locked_yet_is_not_taken_away(void **state)
{
    (void)state;
    begin_exported();
    assert_int_equal(compare(), 0);
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), 0);
}

static void what_the_condition_rules_out_is_not_taken_away(void **state)
{
    (void)state;
    begin_exported();
    run(session, "SELECT id FROM parts WHERE id < 50");
    assert_int_equal(compare(), 0);
}

static void a_partition_that_left_before_the_reading_is_missed(void **state)
{
    (void)state;
    begin_exported();
    assert_int_equal(compare(), 0);
    run(owner, "ALTER TABLE parts DETACH PARTITION high");
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "public.high was taken away"));
}

static void a_partition_that_left_is_missed_under_a_snapshot_of_ones_own_too(void **state)
{
    (void)state;
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    assert_int_equal(compare(), 0);
    run(owner, "DROP TABLE high");
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), -ESTALE);
}

static void a_partition_that_came_before_the_reading_is_seen(void **state)
{
    (void)state;
    begin_exported();
    run(owner, "CREATE TABLE top PARTITION OF parts FOR VALUES FROM (200) TO (300)");
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "public.top was added"));
}

static void a_partition_that_came_is_no_matter_under_a_snapshot_of_ones_own(void **state)
{
    (void)state;
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    assert_int_equal(compare(), 0);
    run(owner, "CREATE TABLE top PARTITION OF parts FOR VALUES FROM (200) TO (300)");
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), 0);
}

/* Nothing names what a function reads before it is called. */
static int make_function(void **state)
{
    run(owner, "DROP TABLE IF EXISTS behind, below CASCADE");
    run(owner, "CREATE TABLE behind AS SELECT 1 AS id FROM generate_series(1, 1000)");
    run(owner, "GRANT SELECT ON behind TO reader");
    run(owner, "CREATE OR REPLACE FUNCTION behind_it(int) RETURNS bigint LANGUAGE plpgsql"
               " STABLE PARALLEL SAFE AS"
               " $$ BEGIN RETURN (SELECT count(*) FROM behind WHERE id > $1); END $$");
    return make_parts(state);
}

static void a_table_that_took_the_place_of_another_behind_a_function_is_seen(void **state)
{
    (void)state;
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    assert_int_equal(compare(), 0);
    run_each(owner, "BEGIN; ALTER TABLE behind RENAME TO gone;"
                    "CREATE TABLE behind AS TABLE gone; GRANT SELECT ON behind TO reader;"
                    "DROP TABLE gone; COMMIT");
    run(session, "SELECT behind_it(0)");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "public.behind was created"));
}

static void a_view_that_took_the_place_of_another_behind_a_function_is_seen(void **state)
{
    (void)state;
    run_each(owner, "ALTER TABLE behind RENAME TO below; CREATE VIEW behind AS TABLE below;"
                    "GRANT SELECT ON behind TO reader");
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    assert_int_equal(compare(), 0);
    run_each(owner, "DROP VIEW behind; CREATE VIEW behind AS TABLE below;"
                    "GRANT SELECT ON behind TO reader");
    run(session, "SELECT behind_it(0)");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "public.behind was created"));
    run(session, "ROLLBACK");
    run_each(owner, "DROP VIEW behind; DROP TABLE below");
}

static void what_a_function_read_for_a_plan_in_parallel_is_seen(void **state)
{
    (void)state;
    run(session, "SET parallel_setup_cost = 0");
    run(session, "SET parallel_tuple_cost = 0");
    run(session, "SET min_parallel_table_scan_size = 0");
    run(session, "SET parallel_leader_participation = off");
    run(owner, "INSERT INTO parts SELECT generate_series(0, 199)");
    assert_int_equal(build_locks_begin(&locks, session, &error), 0);
    assert_int_equal(compare(), 0);
    run_each(owner, "BEGIN; CREATE TEMP TABLE kept AS TABLE behind; TRUNCATE behind;"
                    "INSERT INTO behind TABLE kept; DROP TABLE kept; COMMIT");
    run(session, "SELECT id FROM parts WHERE behind_it(id) > 0");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "public.behind was rewritten"));
}

static void a_rewrite_before_the_reading_is_seen(void **state)
{
    (void)state;
    begin_exported();
    run(owner, "TRUNCATE parts");
    run(session, "SELECT id FROM parts");
    assert_int_equal(compare(), -ESTALE);
    assert_non_null(strstr(error.text, "was rewritten"));
}

static void a_schema_that_has_anothers_name_for_a_while_is_seen(void **state)
{
    (void)state;
    run(owner, "CREATE SCHEMA beside CREATE TABLE things (id int)");
    run(owner, "GRANT USAGE ON SCHEMA beside TO reader");
    run(owner, "GRANT SELECT ON beside.things TO reader");
    for (int given_up = 1; given_up >= 0; given_up--) {
        assert_int_equal(build_locks_begin(&locks, session, &error), 0);
        assert_int_equal(compare(), 0);
        run(owner, "BEGIN");
        run(owner, "ALTER SCHEMA beside RENAME TO shop");
        run(session, "SELECT id FROM beside.things");
        assert_int_equal(compare(), 0);
        run(owner, given_up ? "ROLLBACK" : "COMMIT");
        if (!given_up)
            run(owner, "ALTER SCHEMA shop RENAME TO beside");
        assert_int_equal(compare(), given_up ? 0 : -ESTALE);
        assert_true(given_up || strstr(error.text, "the schema of beside.things was altered"));
        run(session, "ROLLBACK");
    }
    run(owner, "DROP SCHEMA beside CASCADE");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_parts, end)
#define CASE_BEHIND(test) cmocka_unit_test_setup_teardown(test, make_function, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(what_is_not_locked_yet_is_not_taken_away),
        CASE(what_the_condition_rules_out_is_not_taken_away),
        CASE(a_partition_that_left_before_the_reading_is_missed),
        CASE(a_partition_that_left_is_missed_under_a_snapshot_of_ones_own_too),
        CASE(a_partition_that_came_before_the_reading_is_seen),
        CASE(a_partition_that_came_is_no_matter_under_a_snapshot_of_ones_own),
        CASE(a_rewrite_before_the_reading_is_seen),
        CASE(a_schema_that_has_anothers_name_for_a_while_is_seen),
        CASE_BEHIND(a_table_that_took_the_place_of_another_behind_a_function_is_seen),
        CASE_BEHIND(a_view_that_took_the_place_of_another_behind_a_function_is_seen),
        CASE_BEHIND(what_a_function_read_for_a_plan_in_parallel_is_seen),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
