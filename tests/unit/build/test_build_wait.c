/* Who is named as the one that a build waits for, by a real server. */
#include "fakes/database.h"

#include "build/build_wait.h"

#include <string.h>

static struct pg_session *owner, *other;
static struct build_wait waited;
static char conninfo[128];

static int start(void **state)
{
    start_server(state);
    owner = session_as("postgres");
    other = session_as("postgres");
    run_sql(owner, "CREATE TABLE items (id int)");
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    return 0;
}

static int stop(void **state)
{
    pg_session_close(other);
    pg_session_close(owner);
    return stop_server(state);
}

static int init(void **state)
{
    (void)state;
    build_wait_init(&waited);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    build_wait_end_watch(&waited);
    build_wait_finish(&waited);
    return 0;
}

static char *pid_of(struct pg_session *session)
{
    PGresult *result;
    struct pg_error error;
    assert_int_equal(pg_session_exec(session, "SELECT pg_backend_pid()", 0, NULL, &result, &error),
                     0);
    char *pid = strdup(PQgetvalue(result, 0, 0));
    PQclear(result);
    return pid;
}

static void watch(const char *pid)
{
    const struct pg_session_options options = {.conninfo = conninfo, .application = "watchman"};
    build_wait_watch(&waited, &options, pid);
}

/* The text, when it has this in it; the guard of a test that hangs is ctest. */
static void wait_for(const char *part, char text[BUILD_WAIT_TEXT])
{
    do {
        struct timespec pause = {.tv_nsec = 20000000};
        nanosleep(&pause, NULL);
        build_wait_read(&waited, text);
    } while (!strstr(text, part));
}

static void what_is_said_is_read_in_one_line(void **state)
{
    char text[BUILD_WAIT_TEXT];
    (void)state;
    build_wait_read(&waited, text);
    assert_string_equal(text, "");
    build_wait_say(&waited, "for a lock\nof mine");
    build_wait_read(&waited, text);
    assert_string_equal(text, "for a lock of mine");
}

static void what_is_too_long_is_cut(void **state)
{
    char *said = calloc(1, 2 * BUILD_WAIT_TEXT), text[BUILD_WAIT_TEXT];
    (void)state;
    memset(said, 'x', 2 * BUILD_WAIT_TEXT - 1);
    build_wait_say(&waited, said);
    build_wait_read(&waited, text);
    assert_in_range(strlen(text), BUILD_WAIT_TEXT / 2, BUILD_WAIT_TEXT - 1);
    free(said);
}

static void a_watch_that_is_ended_at_once_has_asked_nobody(void **state)
{
    char text[BUILD_WAIT_TEXT];
    (void)state;
    build_wait_end_watch(&waited); /* none was begun */
    watch("1");
    build_wait_end_watch(&waited);
    build_wait_read(&waited, text);
    assert_string_equal(text, "");
}

/* Sends it without waiting for the answer: that waits for a lock. */
struct waiter {
    uv_thread_t thread;
    struct pg_session *session;
    const char *sql;
};

static void run_waiter(void *arg)
{
    struct waiter *waiter = arg;
    run_sql(waiter->session, waiter->sql);
}

static void who_holds_the_lock_is_named_with_what_ends_it(void **state)
{
    struct waiter waiter = {.session = other, .sql = "LOCK TABLE items; ROLLBACK"};
    char text[BUILD_WAIT_TEXT], wanted[64], *holder = pid_of(owner), *pid = pid_of(other);
    (void)state;
    run_sql(owner, "BEGIN; LOCK TABLE items");
    run_sql(other, "BEGIN");
    assert_int_equal(uv_thread_create(&waiter.thread, run_waiter, &waiter), 0);
    watch(pid);
    snprintf(wanted, sizeof wanted, "SELECT pg_terminate_backend(%s)", holder);
    wait_for(wanted, text);
    assert_non_null(strstr(text, "for a lock on items behind process"));
    run_sql(owner, "ROLLBACK");
    uv_thread_join(&waiter.thread);
    build_wait_end_watch(&waited);
    build_wait_read(&waited, text);
    assert_string_equal(text, "");
    free(holder);
    free(pid);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_said_is_read_in_one_line, init, finish),
        cmocka_unit_test_setup_teardown(what_is_too_long_is_cut, init, finish),
        cmocka_unit_test_setup_teardown(a_watch_that_is_ended_at_once_has_asked_nobody, init,
                                        finish),
        cmocka_unit_test_setup_teardown(who_holds_the_lock_is_named_with_what_ends_it, init,
                                        finish),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
