/* Whether a generation is believed, by what a real server says when it is asked once more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "build/second_look.h"
#include "fakes/config_file.h"
#include "fakes/servers.h"

static struct server server;
static struct pg_session *session;
static struct config *config;
static struct pg_error error;

static void run(const char *sql)
{
    if (pg_session_exec(session, sql, 0, NULL, NULL, &error))
        fail_msg("%s\n%s", sql, error.text);
}

static int start(void **state)
{
    char conninfo[128];
    (void)state;
    postgres_create(&server);
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    struct pg_session_options options = {
        .conninfo = conninfo, .application = "test", .connect_timeout = 10};
    assert_int_equal(pg_session_open(&session, &options, &error), 0);
    config = config_from_text(
        "cache: redis://127.0.0.1\n"
        "database: postgresql://app@db/shop\n"
        "sync: poll\n"
        "keyspaces:\n"
        "  - {name: items, key: \"item:{id}\", table: items, on_miss: pass, where: live}\n"
        "  - {name: users, key: \"user:{id}\", table: users, on_miss: pass}\n");
    run("CREATE TABLE items (id int, live bool)");
    run("CREATE TABLE users (id int)");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    config_destroy(config);
    pg_session_close(session);
    server_destroy(&server);
    return 0;
}

/* In the database, beside rows that the keyspaces have not. */
static void rows_are(int items, int users)
{
    char sql[300];
    run("TRUNCATE items, users");
    snprintf(sql, sizeof sql, "INSERT INTO items SELECT n, n <= %d FROM generate_series(1, %d) n;",
             items, items + 50);
    run(sql);
    run("INSERT INTO items SELECT NULL, true FROM generate_series(1, 50)");
    snprintf(sql, sizeof sql, "INSERT INTO users SELECT generate_series(1, %d)", users);
    run(sql);
}

/* Of a generation that was built with so many rows, every `copies` of which have one key. */
static int look(uint64_t items, uint64_t users, uint64_t copies, uint64_t items_before,
                uint64_t users_before)
{
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-4};
    struct generation *generation = generation_create(1, 2);
    const uint64_t rows[] = {items, users}, before[] = {items_before, users_before};
    const char *why;
    error = (struct pg_error){.text = ""};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(filter_create(&generation->filters[i], &options, &why), 0);
        for (uint64_t n = 0; n < rows[i] / copies; n++)
            filter_insert(generation->filters[i], filter_hash(&generation->seed, &n, sizeof n));
        generation->shared[i] = rows[i] - rows[i] / copies;
    }
    size_t keyspace;
    int status = second_look(session, config, generation, before, &keyspace, &error);
    generation_release(generation);
    return status;
}

static void an_empty_generation_is_believed_when_the_database_is_empty(void **state)
{
    (void)state;
    rows_are(0, 0);
    assert_int_equal(look(0, 0, 1, 0, 0), 0);
    assert_int_equal(look(0, 0, 1, 100, 100), 0);
}

static void an_empty_generation_is_not_believed_when_a_row_is_there(void **state)
{
    (void)state;
    rows_are(1, 7);
    assert_int_equal(look(0, 7, 1, 0, 0), -ESTALE);
    assert_non_null(strstr(error.text, "keyspace items: 0 rows"));
    assert_int_equal(look(0, 7, 1, 1, 0), -ESTALE);
    assert_int_equal(look(1, 7, 1, 1, 0), 0);
    assert_int_equal(look(1, 0, 1, 1, 0), -ESTALE);
    assert_non_null(strstr(error.text, "keyspace users"));
}

static void one_that_knows_less_than_half_is_held_against_the_database(void **state)
{
    (void)state;
    rows_are(100, 1);
    assert_int_equal(look(49, 1, 1, 100, 1), -ESTALE);
    assert_int_equal(look(50, 1, 1, 100, 1), 0);
    rows_are(49, 1);
    assert_int_equal(look(40, 1, 1, 100, 1), 0);
    rows_are(50, 1);
    assert_int_equal(look(40, 1, 1, 100, 1), -ESTALE);
}

static void rows_that_share_a_key_are_all_counted(void **state)
{
    (void)state;
    rows_are(100, 1);
    assert_int_equal(look(100, 1, 10, 200, 1), 0);
    assert_int_equal(look(99, 1, 9, 200, 1), -ESTALE);
}

static void what_was_inserted_since_is_known_to_the_next_generation(void **state)
{
    (void)state;
    rows_are(60, 1);
    assert_int_equal(look(10, 1, 1, 100, 1), -ESTALE);
    assert_int_equal(look(60, 1, 1, 100, 1), 0);
}

static void a_question_that_is_refused_says_why(void **state)
{
    (void)state;
    rows_are(5, 5);
    run("ALTER TABLE users RENAME TO people");
    assert_int_equal(look(5, 0, 1, 0, 0), -EPROTO);
    assert_non_null(strstr(error.text, "users"));
    run("ALTER TABLE people RENAME TO users");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_generation_is_believed_when_the_database_is_empty),
        cmocka_unit_test(an_empty_generation_is_not_believed_when_a_row_is_there),
        cmocka_unit_test(one_that_knows_less_than_half_is_held_against_the_database),
        cmocka_unit_test(rows_that_share_a_key_are_all_counted),
        cmocka_unit_test(what_was_inserted_since_is_known_to_the_next_generation),
        cmocka_unit_test(a_question_that_is_refused_says_why),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
