#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "fakes/servers.h"
#include "postgres/pg_session.h"

static struct server server;
static atomic_bool stop;

static const char *conninfo(const char *more)
{
    static char text[256];
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres dbname=postgres %s",
             server.port, more);
    return text;
}

static int try_open(struct pg_session **out, const char *more, struct pg_error *error)
{
    const struct pg_session_options options = {
        .conninfo = conninfo(more), .application = "guard", .connect_timeout = 10, .stop = &stop};
    memset(error, '#', sizeof *error);
    return pg_session_open(out, &options, error);
}

static struct pg_session *open_session(void)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    atomic_store(&stop, false);
    assert_int_equal(try_open(&session, "", &error), 0);
    return session;
}

/* The only value of a statement's only row. */
static void expect_answer(struct pg_session *session, const char *sql, const char *wanted)
{
    PGresult *result = NULL;
    struct pg_error error;
    assert_int_equal(pg_session_exec(session, sql, 0, NULL, &result, &error), 0);
    assert_int_equal(PQntuples(result), 1);
    assert_string_equal(PQgetvalue(result, 0, 0), wanted);
    PQclear(result);
}

static void expect_one_line(const struct pg_error *error)
{
    size_t length = strlen(error->text);
    assert_in_range(length, 1, sizeof error->text - 1);
    assert_null(strpbrk(error->text, "\r\n\t"));
    assert_true(error->text[length - 1] != ' ');
}

static void a_refused_connection_says_why_in_one_line(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    char more[64];
    (void)state;
    snprintf(more, sizeof more, "port=%d", free_port());
    assert_int_equal(try_open(&session, more, &error), -ECONNREFUSED);
    expect_one_line(&error);
    assert_non_null(strstr(error.text, "refused"));
    assert_string_equal(error.sqlstate, "");
    assert_null(session);
}

static void the_servers_refusal_keeps_its_sqlstate(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    (void)state;
    assert_int_equal(try_open(&session, "user=locked password=wrong", &error), -ECONNREFUSED);
    expect_one_line(&error);
    assert_string_equal(error.sqlstate, "28P01");
    assert_non_null(strstr(error.text, "password authentication failed for user \"locked\""));
    assert_null(strstr(error.text, "28P01"));
    assert_null(strstr(error.text, "LOCATION"));
    assert_int_equal(try_open(&session, "dbname=nowhere", &error), -ECONNREFUSED);
    assert_string_equal(error.sqlstate, "3D000");
    assert_int_equal(try_open(&session, "user=locked password=secret", &error), 0);
    pg_session_close(session);
}

static void a_conninfo_that_makes_no_sense_is_refused(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    (void)state;
    assert_int_equal(try_open(&session, "nonsense=1", &error), -ECONNREFUSED);
    assert_non_null(strstr(error.text, "nonsense"));
    expect_one_line(&error);
}

static void a_server_that_never_answers_is_given_up(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    char text[64];
    int port, listener = silent_listener(&port);
    uint64_t start = uv_hrtime();
    (void)state;
    snprintf(text, sizeof text, "host=127.0.0.1 port=%d user=postgres", port);
    const struct pg_session_options options = {.conninfo = text, .connect_timeout = 1};
    assert_int_equal(pg_session_open(&session, &options, &error), -ECONNREFUSED);
    expect_one_line(&error);
    assert_in_range((uv_hrtime() - start) / 1000000, 900, 5000);
    close(listener);
}

static void the_host_behind_one_that_never_answers_is_tried(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    char text[128];
    int port, listener = silent_listener(&port);
    (void)state;
    snprintf(text, sizeof text,
             "postgresql://postgres@127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/postgres", port, port,
             server.port);
    const struct pg_session_options options = {.conninfo = text, .connect_timeout = 1};
    if (pg_session_open(&session, &options, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(pg_session_exec(session, "SELECT", 0, NULL, NULL, &error), 0);
    pg_session_close(session);
    close(listener);
}

static void the_conninfo_keeps_its_own_settings(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    (void)state;
    assert_int_equal(try_open(&session,
                              "application_name=mine client_encoding=LATIN1 "
                              "options='-c work_mem=12345 -c statement_timeout=12345'",
                              &error),
                     0);
    expect_answer(session, "SHOW application_name", "mine");
    expect_answer(session, "SHOW client_encoding", "UTF8");
    expect_answer(session, "SHOW work_mem", "12345kB");
    expect_answer(session, "SHOW statement_timeout", "0");
    pg_session_close(session);
    session = open_session();
    expect_answer(session, "SHOW application_name", "guard");
    pg_session_close(session);
    pg_session_close(NULL);
}

static void a_statement_takes_text_and_null(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    PGresult *result = NULL;
    const char *const values[] = {"gr\xc3\xbc\xc3\x9f' --", NULL};
    (void)state;
    assert_int_equal(
        pg_session_exec(session, "SELECT $1::text, $2::int IS NULL", 2, values, &result, &error),
        0);
    assert_string_equal(PQgetvalue(result, 0, 0), values[0]);
    assert_string_equal(PQgetvalue(result, 0, 1), "t");
    PQclear(result);
    assert_int_equal(pg_session_exec(session, "CREATE TEMP TABLE t ()", 0, NULL, NULL, &error), 0);
    assert_string_equal(error.text, "");
    pg_session_close(session);
}

static void a_refused_statement_leaves_the_session_usable(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    PGresult *result = NULL;
    (void)state;
    assert_int_equal(pg_session_exec(session, "SELECT * FROM nowhere", 0, NULL, &result, &error),
                     -EPROTO);
    assert_null(result);
    assert_string_equal(error.sqlstate, "42P01");
    expect_one_line(&error);
    assert_int_equal(pg_session_exec(session, "SELECT 1; SELECT 2", 0, NULL, NULL, &error),
                     -EPROTO);
    assert_string_equal(error.sqlstate, "42601");
    expect_answer(session, "SELECT 7", "7");
    pg_session_close(session);
}

static void a_long_error_is_cut_at_a_characters_border(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    (void)state;
    assert_int_equal(pg_session_exec(session, "SELECT ('x' || repeat('\xe2\x82\xac', 1000))::int",
                                     0, NULL, NULL, &error),
                     -EPROTO);
    size_t length = strlen(error.text);
    assert_in_range(length, sizeof error.text - 8, sizeof error.text - 1);
    assert_memory_equal(error.text + length - 3, "\xe2\x82\xac", 3);
    pg_session_close(session);
}

static void a_copy_is_no_plain_statement(void **state)
{
    static const char *const statements[] = {"COPY (SELECT 1) TO STDOUT",
                                             "COPY pg_class FROM STDIN"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct pg_session *session = open_session();
        struct pg_error error;
        assert_int_equal(pg_session_exec(session, statements[i], 0, NULL, NULL, &error), -EPROTO);
        assert_int_equal(pg_session_exec(session, "SELECT 1", 0, NULL, NULL, &error),
                         -ECONNREFUSED);
        pg_session_close(session);
    }
}

static void a_lost_connection_is_told_with_the_servers_reason(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    (void)state;
    assert_int_equal(pg_session_exec(session, "SELECT pg_terminate_backend(pg_backend_pid())", 0,
                                     NULL, NULL, &error),
                     -ECONNREFUSED);
    assert_string_equal(error.sqlstate, "57P01");
    assert_int_equal(pg_session_exec(session, "SELECT 1", 0, NULL, NULL, &error), -ECONNREFUSED);
    assert_true(error.text[0] != '\0');
    pg_session_close(session);
}

/* COPY. */

struct rows {
    size_t count, columns, nulls, bytes;
    size_t stop_after; /* 0: never */
    char last[600];
};

static int count_row(void *arg, const struct pg_column *columns, size_t count)
{
    struct rows *rows = arg;
    rows->count++;
    rows->columns = count;
    for (size_t i = 0; i < count; i++) {
        rows->nulls += columns[i].at == NULL;
        rows->bytes += columns[i].length;
    }
    if (count > 0 && columns[0].at)
        snprintf(rows->last, sizeof rows->last, "%.*s", (int)columns[0].length, columns[0].at);
    return rows->count == rows->stop_after ? 77 : 0;
}

static void a_copy_hands_over_every_row(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {0};
    (void)state;
    assert_int_equal(
        pg_session_copy(session,
                        "COPY (SELECT g, CASE WHEN g % 2 = 0 THEN 'a' || chr(9) || 'b' END "
                        "FROM generate_series(1, 300000) g) TO STDOUT",
                        count_row, &rows, &error),
        0);
    assert_int_equal(rows.count, 300000);
    assert_int_equal(rows.columns, 2);
    assert_int_equal(rows.nulls, 150000);
    assert_int_equal(rows.bytes, 9 + 180 + 2700 + 36000 + 450000 + 200001 * 6 + 150000 * 3);
    assert_string_equal(rows.last, "300000");
    expect_answer(session, "SELECT 1", "1");
    pg_session_close(session);
}

static void a_copied_value_comes_as_postgresql_prints_it(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {0};
    char wanted[600] = "";
    size_t length = 0;
    (void)state;
    for (int c = 1; c < 256; c++) {
        if (c >= 128)
            wanted[length++] = (char)(0xC0 | c >> 6);
        wanted[length++] = (char)(c >= 128 ? 0x80 | (c & 63) : c);
    }
    assert_int_equal(pg_session_copy(session,
                                     "COPY (SELECT string_agg(chr(g), '' ORDER BY g) "
                                     "FROM generate_series(1, 255) g) TO STDOUT",
                                     count_row, &rows, &error),
                     0);
    assert_string_equal(rows.last, wanted);
    assert_int_equal(
        pg_session_copy(session, "COPY (SELECT '\\N') TO STDOUT", count_row, &rows, &error), 0);
    assert_string_equal(rows.last, "\\N");
    assert_int_equal(rows.nulls, 0);
    pg_session_close(session);
}

static void a_binary_copy_comes_as_postgresql_sends_it(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {0};
    (void)state;
    assert_int_equal(pg_session_copy(session,
                                     "COPY (SELECT g::text, CASE WHEN g % 3 = 0 THEN g END "
                                     "FROM generate_series(1, 3000) g) TO STDOUT (FORMAT binary)",
                                     count_row, &rows, &error),
                     0);
    assert_int_equal(rows.count, 3000);
    assert_int_equal(rows.columns, 2);
    assert_int_equal(rows.nulls, 2000);
    assert_int_equal(rows.bytes, 9 + 180 + 2700 + 2001 * 4 + 1000 * 4);
    assert_string_equal(rows.last, "3000");
    rows = (struct rows){0};
    assert_int_equal(pg_session_copy(session,
                                     "COPY (SELECT 1 WHERE false) TO STDOUT (FORMAT binary)",
                                     count_row, &rows, &error),
                     0);
    assert_int_equal(pg_session_copy(session, "COPY (SELECT) TO STDOUT (FORMAT binary)", count_row,
                                     &rows, &error),
                     0);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.columns, 0);
    expect_answer(session, "SELECT 1", "1");
    pg_session_close(session);
}

static void empty_copies_are_no_error(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {.columns = 9};
    (void)state;
    assert_int_equal(
        pg_session_copy(session, "COPY (SELECT 1 WHERE false) TO STDOUT", count_row, &rows, &error),
        0);
    assert_int_equal(rows.count, 0);
    assert_int_equal(pg_session_copy(session, "COPY (SELECT) TO STDOUT", count_row, &rows, &error),
                     0);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.columns, 0);
    assert_int_equal(
        pg_session_copy(session, "COPY (SELECT '') TO STDOUT", count_row, &rows, &error), 0);
    assert_int_equal(rows.columns, 1);
    assert_string_equal(rows.last, "");
    pg_session_close(session);
}

static void an_error_in_the_middle_of_a_copy_is_told(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {0};
    (void)state;
    assert_int_equal(
        pg_session_copy(session,
                        "COPY (SELECT 1 / (5000 - g) FROM generate_series(1, 9000) g) TO STDOUT",
                        count_row, &rows, &error),
        -EPROTO);
    assert_string_equal(error.sqlstate, "22012");
    assert_int_equal(rows.count, 4999);
    expect_answer(session, "SELECT 1", "1");
    assert_int_equal(pg_session_copy(session, "COPY nowhere TO STDOUT", count_row, &rows, &error),
                     -EPROTO);
    assert_string_equal(error.sqlstate, "42P01");
    assert_int_equal(pg_session_copy(session, "SELECT 1", count_row, &rows, &error), -EPROTO);
    pg_session_close(session);
}

static void copies_of_another_shape_are_refused(void **state)
{
    static const char *const statements[] = {
        "COPY (SELECT 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17) TO STDOUT",
        "COPY pg_class FROM STDIN"};
    (void)state;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++) {
        struct pg_session *session = open_session();
        struct pg_error error;
        struct rows rows = {0};
        assert_int_equal(pg_session_copy(session, statements[i], count_row, &rows, &error),
                         -EPROTO);
        expect_one_line(&error);
        assert_int_equal(rows.count, 0);
        pg_session_close(session);
    }
}

static void the_receiver_of_rows_can_end_a_copy(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {.stop_after = 1000};
    (void)state;
    assert_int_equal(pg_session_copy(session, "COPY (SELECT generate_series(1, 1000000)) TO STDOUT",
                                     count_row, &rows, &error),
                     77);
    assert_int_equal(rows.count, 1000);
    assert_int_equal(pg_session_exec(session, "SELECT 1", 0, NULL, NULL, &error), -ECONNREFUSED);
    pg_session_close(session);
}

static void a_copy_whose_server_dies_is_told(void **state)
{
    struct pg_session *session = open_session();
    struct pg_error error;
    struct rows rows = {0};
    (void)state;
    assert_int_equal(
        pg_session_copy(session,
                        "COPY (SELECT CASE WHEN g = 5000 THEN "
                        "pg_terminate_backend(pg_backend_pid())::text || pg_sleep(9)::text "
                        "ELSE 'x' END FROM generate_series(1, 9000) g) TO STDOUT",
                        count_row, &rows, &error),
        -ECONNREFUSED);
    assert_string_equal(error.sqlstate, "57P01");
    assert_int_equal(rows.count, 4999);
    pg_session_close(session);
}

/* The stop flag. */

static void stop_soon(void *arg)
{
    (void)arg;
    usleep(300000);
    atomic_store(&stop, true);
}

static void expect_stopped(int (*wait)(struct pg_session *, struct pg_error *))
{
    struct pg_session *session = open_session();
    struct pg_error error;
    uv_thread_t thread;
    uint64_t start = uv_hrtime();
    assert_int_equal(uv_thread_create(&thread, stop_soon, NULL), 0);
    assert_int_equal(wait(session, &error), -ECANCELED);
    assert_in_range((uv_hrtime() - start) / 1000000, 250, 3000);
    expect_one_line(&error);
    uv_thread_join(&thread);
    assert_int_equal(pg_session_exec(session, "SELECT 1", 0, NULL, NULL, &error), -ECONNREFUSED);
    pg_session_close(session);
}

static int sleep_long(struct pg_session *session, struct pg_error *error)
{
    return pg_session_exec(session, "SELECT pg_sleep(5)", 0, NULL, NULL, error);
}

static int copy_slowly(struct pg_session *session, struct pg_error *error)
{
    struct rows rows = {0};
    return pg_session_copy(session,
                           "COPY (SELECT pg_sleep(0.01) FROM generate_series(1, 500)) TO STDOUT",
                           count_row, &rows, error);
}

static void a_waiting_statement_can_be_stopped(void **state)
{
    (void)state;
    expect_stopped(sleep_long);
}

static void a_running_copy_can_be_stopped(void **state)
{
    (void)state;
    expect_stopped(copy_slowly);
}

static void connecting_can_be_stopped(void **state)
{
    struct pg_session *session = NULL;
    struct pg_error error;
    char more[32];
    int port, listener = silent_listener(&port);
    uv_thread_t thread;
    (void)state;
    atomic_store(&stop, false);
    snprintf(more, sizeof more, "port=%d", port);
    assert_int_equal(uv_thread_create(&thread, stop_soon, NULL), 0);
    assert_int_equal(try_open(&session, more, &error), -ECANCELED);
    uv_thread_join(&thread);
    close(listener);
    atomic_store(&stop, false);
}

/* Deadlines. */

static struct pg_session *open_impatient(void)
{
    const struct pg_session_options options = {
        .conninfo = conninfo(""), .connect_timeout = 10, .answer_timeout = 1};
    struct pg_session *session = NULL;
    struct pg_error error;
    assert_int_equal(pg_session_open(&session, &options, &error), 0);
    return session;
}

static void expect_no_more_than_a_deadline(int (*wait)(struct pg_session *, struct pg_error *))
{
    struct pg_session *session = open_impatient();
    struct pg_error error;
    uint64_t start = uv_hrtime();
    assert_int_equal(wait(session, &error), -ETIMEDOUT);
    assert_in_range((uv_hrtime() - start) / 1000000, 900, 4000);
    assert_string_equal(error.text, "no answer from the server within 1 s");
    assert_int_equal(pg_session_exec(session, "SELECT 1", 0, NULL, NULL, &error), -ECONNREFUSED);
    pg_session_close(session);
}

static int copy_with_a_pause(struct pg_session *session, struct pg_error *error)
{
    struct rows rows = {0};
    return pg_session_copy(session, "COPY (SELECT pg_sleep(5)) TO STDOUT", count_row, &rows, error);
}

static void a_server_that_takes_longer_than_it_may_is_given_up(void **state)
{
    (void)state;
    expect_no_more_than_a_deadline(sleep_long);
    expect_no_more_than_a_deadline(copy_with_a_pause);
}

static void a_deadline_is_anew_for_each_statement_and_for_rows_that_come(void **state)
{
    struct pg_session *session = open_impatient();
    struct pg_error error;
    struct rows rows = {0};
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pg_session_exec(session, "SELECT pg_sleep(0.4)", 0, NULL, NULL, &error),
                         0);
    /* Rows of a size at which the server sends each by itself. */
    assert_int_equal(pg_session_copy(session,
                                     "COPY (SELECT pg_sleep(0.1), repeat('x', 20000)"
                                     " FROM generate_series(1, 15)) TO STDOUT",
                                     count_row, &rows, &error),
                     0);
    assert_int_equal(rows.count, 15);
    pg_session_close(session);
}

static int start_server(void **state)
{
    (void)state;
    postgres_create(&server);
    return 0;
}

static int end_server(void **state)
{
    (void)state;
    server_destroy(&server);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_connection_says_why_in_one_line),
        cmocka_unit_test(the_servers_refusal_keeps_its_sqlstate),
        cmocka_unit_test(a_conninfo_that_makes_no_sense_is_refused),
        cmocka_unit_test(a_server_that_never_answers_is_given_up),
        cmocka_unit_test(the_host_behind_one_that_never_answers_is_tried),
        cmocka_unit_test(the_conninfo_keeps_its_own_settings),
        cmocka_unit_test(a_statement_takes_text_and_null),
        cmocka_unit_test(a_refused_statement_leaves_the_session_usable),
        cmocka_unit_test(a_long_error_is_cut_at_a_characters_border),
        cmocka_unit_test(a_copy_is_no_plain_statement),
        cmocka_unit_test(a_lost_connection_is_told_with_the_servers_reason),
        cmocka_unit_test(a_copy_hands_over_every_row),
        cmocka_unit_test(a_copied_value_comes_as_postgresql_prints_it),
        cmocka_unit_test(a_binary_copy_comes_as_postgresql_sends_it),
        cmocka_unit_test(empty_copies_are_no_error),
        cmocka_unit_test(an_error_in_the_middle_of_a_copy_is_told),
        cmocka_unit_test(copies_of_another_shape_are_refused),
        cmocka_unit_test(the_receiver_of_rows_can_end_a_copy),
        cmocka_unit_test(a_copy_whose_server_dies_is_told),
        cmocka_unit_test(a_waiting_statement_can_be_stopped),
        cmocka_unit_test(a_running_copy_can_be_stopped),
        cmocka_unit_test(connecting_can_be_stopped),
        cmocka_unit_test(a_server_that_takes_longer_than_it_may_is_given_up),
        cmocka_unit_test(a_deadline_is_anew_for_each_statement_and_for_rows_that_come),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
