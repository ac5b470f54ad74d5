/* The connections that read beside a build's first one, with a real server. */
#include "fakes/database.h"

#include "build/build_helpers.h"
#include "build/build_session.h"

#include <string.h>

static struct pg_session *first, *owner;
static struct config *config;
static struct pg_error error;
static char conninfo[128], *snapshot;
static struct build_helpers helpers;
static struct pg_session_options options = {.conninfo = conninfo, .connect_timeout = 10};

static int start(void **state)
{
    start_server(state);
    owner = session_as("postgres");
    run_sql(owner, "CREATE TABLE items (id int); INSERT INTO items VALUES (1)");
    config = config_of("  - {name: i, key: \"i:{id}\", table: items, on_miss: pass}\n");
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    return 0;
}

static int stop(void **state)
{
    config_destroy(config);
    pg_session_close(owner);
    return stop_server(state);
}

static int begin(void **state)
{
    (void)state;
    first = session_as("postgres");
    assert_int_equal(build_session_begin(first, &error), 0);
    assert_int_equal(build_session_export(first, &snapshot, &error), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    build_helpers_close(&helpers);
    pg_session_close(first);
    free(snapshot);
    return 0;
}

static void get(unsigned wanted, const char *of)
{
    build_helpers_get(&helpers, wanted, &options, of, pg_session_server(first));
}

static int count_rows(struct pg_session *session)
{
    PGresult *result;
    assert_int_equal(
        pg_session_exec(session, "SELECT count(*) FROM items", 0, NULL, &result, &error), 0);
    int rows = atoi(PQgetvalue(result, 0, 0));
    PQclear(result);
    return rows;
}

static void all_read_what_the_first_one_sees(void **state)
{
    (void)state;
    run_sql(owner, "INSERT INTO items VALUES (2)");
    get(2, snapshot);
    assert_int_equal(helpers.count, 2);
    get(1, snapshot); /* there are more */
    assert_int_equal(helpers.count, 2);
    assert_false(helpers.no_more);
    for (unsigned i = 0; i < helpers.count; i++)
        assert_int_equal(count_rows(helpers.at[i]), count_rows(first));
    assert_int_equal(count_rows(owner), count_rows(first) + 1);
}

static void one_that_cannot_be_had_is_done_without(void **state)
{
    (void)state;
    get(2, "00000000-00000000-1"); /* no such snapshot */
    assert_int_equal(helpers.count, 0);
    assert_true(helpers.no_more);
    get(2, snapshot);
    assert_int_equal(helpers.count, 0);
}

static void one_on_another_server_is_done_without(void **state)
{
    struct pg_server another = *pg_session_server(first);
    (void)state;
    snprintf(another.history, sizeof another.history, "another");
    build_helpers_get(&helpers, 2, &options, snapshot, &another);
    assert_int_equal(helpers.count, 0);
    assert_true(helpers.no_more);
}

static void one_that_would_wait_for_the_table_is_closed(void **state)
{
    (void)state;
    get(2, snapshot);
    build_helpers_lock(&helpers, &config->keyspaces[0]);
    assert_int_equal(helpers.count, 2);
    build_helpers_close(&helpers);
    assert_false(helpers.no_more);
    get(2, snapshot);
    run_sql(owner, "BEGIN; LOCK TABLE items");
    build_helpers_lock(&helpers, &config->keyspaces[0]);
    run_sql(owner, "ROLLBACK");
    assert_int_equal(helpers.count, 0);
    assert_true(helpers.no_more);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_read_what_the_first_one_sees, begin, end),
        cmocka_unit_test_setup_teardown(one_that_cannot_be_had_is_done_without, begin, end),
        cmocka_unit_test_setup_teardown(one_on_another_server_is_done_without, begin, end),
        cmocka_unit_test_setup_teardown(one_that_would_wait_for_the_table_is_closed, begin, end),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
