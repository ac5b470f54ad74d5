#include "fakes/receiver.h"

static void terminate_walsender(void)
{
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_replication");
}

static void expect_lost_once(struct seen *seen)
{
    run_until(&seen->lost, 1);
    size_t messages = seen->messages, positions = seen->positions;
    pg_stream_confirm(seen->stream, UINT64_MAX);
    pg_stream_ask(seen->stream);
    pg_stream_pause(seen->stream, false);
    run_for(100);
    assert_int_equal(seen->lost, 1);
    assert_int_equal(seen->messages, messages);
    assert_int_equal(seen->positions, positions);
    assert_true(seen->error.text[0] != '\0');
    assert_null(strchr(seen->error.text, '\n'));
}

static void a_terminated_walsender_is_told_with_its_words(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    terminate_walsender();
    expect_lost_once(&seen);
    assert_string_equal(seen.error.sqlstate, "57P01");
    run_until_sql("SELECT count(*) FROM pg_replication_slots", "0"); /* before it is closed */
    close_stream(&seen);
}

static void a_walsender_that_ended_before_the_start_is_told(void **state)
{
    struct seen seen = {0};
    struct pg_error error;
    (void)state;
    open_stream(&seen, "");
    sql("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots");
    run_until_sql("SELECT count(*) FROM pg_replication_slots", "0");
    int rc = pg_stream_start(seen.stream, &loop, &seeing, &seen, &error);
    if (rc == 0) {
        expect_lost_once(&seen);
        assert_string_equal(seen.error.sqlstate, "57P01");
    }
    close_stream(&seen);
}

/* And nobody reads: without the loop. */
static void wait_until_all_is_sent(void)
{
    uint64_t until = now_ms() + PATIENCE_MS;
    while (strcmp(sql("SELECT sent_lsn >= pg_current_wal_lsn() FROM pg_stat_replication"), "t")) {
        usleep(STEP_MS * 1000);
        assert_true(now_ms() < until);
    }
}

static void what_was_sent_before_the_end_is_delivered(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item SELECT generate_series(1, 5000)");
    run_until_sql("SELECT sent_lsn >= pg_current_wal_lsn() FROM pg_stat_replication", "t");
    sql("INSERT INTO item SELECT generate_series(5001, 9000)");
    wait_until_all_is_sent();
    terminate_walsender();
    run_until_sql("SELECT count(*) FROM pg_stat_replication", "0");
    expect_lost_once(&seen);
    assert_int_equal(seen.inserts, 9000);
    assert_int_equal(seen.commits, 2);
    assert_string_equal(seen.error.sqlstate, "57P01");
    close_stream(&seen);
}

static void a_paused_stream_learns_of_its_end(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    pg_stream_pause(seen.stream, true);
    run_for(50);
    sql("INSERT INTO item SELECT generate_series(2, 1000)");
    wait_until_all_is_sent();
    uint64_t start = now_ms();
    terminate_walsender();
    expect_lost_once(&seen);
    assert_in_range(now_ms() - start, 0, 2500);
    assert_string_equal(seen.error.sqlstate, "57P01");
    assert_int_equal(seen.commits, 1);
    close_stream(&seen);
}

static void a_killed_server_is_told(void **state)
{
    struct seen paused = {0}, reading = {0};
    (void)state;
    open_stream(&paused, "");
    open_stream(&reading, "");
    start_stream(&paused);
    start_stream(&reading);
    sql("INSERT INTO item VALUES (1)");
    run_until(&paused.commits, 1);
    run_until(&reading.commits, 1);
    pg_stream_pause(paused.stream, true);
    run_for(50);
    server_kill(&server, SIGKILL);
    expect_lost_once(&reading);
    expect_lost_once(&paused);
    restart_server(SIGKILL);
    close_stream(&reading);
    close_stream(&paused);
}

/* The server ends only when all it has sent is confirmed. */
static void a_server_that_shuts_down_is_told(void **state)
{
    struct seen seen = {.confirms = true};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    kill(server.pid, SIGINT);
    expect_lost_once(&seen);
    assert_non_null(strstr(seen.error.text, "ended the replication"));
    restart_server(SIGINT);
    close_stream(&seen);
}

/* Nor does it wait for what is never confirmed. */
static void a_server_that_shuts_down_does_not_wait_for_a_stream_that_never_confirmed(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    kill(server.pid, SIGINT);
    expect_lost_once(&seen);
    assert_non_null(strstr(seen.error.text, "ended the replication"));
    restart_server(SIGINT);
    close_stream(&seen);
}

static void expect_refused_publication(const char *name)
{
    struct seen seen = {0};
    struct pg_error error;
    char wanted[100];
    const struct pg_stream_options options = {.conninfo = conninfo(""), .publication = name};
    assert_int_equal(pg_stream_open(&seen.stream, &options, &error), 0);
    start_stream(&seen);
    run_for(100);
    assert_int_equal(seen.lost, 0);
    sql("INSERT INTO item SELECT count(*) FROM item");
    expect_lost_once(&seen);
    snprintf(wanted, sizeof wanted, "publication \"%s\" does not exist", name);
    assert_string_equal(seen.error.text, wanted);
    assert_string_equal(seen.error.sqlstate, "42704");
    assert_int_equal(seen.inserts, 0);
    close_stream(&seen);
}

static void a_publication_that_is_not_there_is_told_at_the_first_change(void **state)
{
    (void)state;
    expect_refused_publication("nowhere");
    expect_refused_publication("PUB");
    expect_refused_publication("pub, nowhere");
}

static void a_publications_name_may_hold_anything(void **state)
{
    static const char *const names[] = {"o'clock", "a \"b\" c", "x\\y', \"z", "Gr\xc3\xbc\xc3\x9f"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct seen seen = {0};
        struct pg_error error;
        char text[200];
        const struct pg_stream_options options = {.conninfo = conninfo(""),
                                                  .publication = names[i]};
        char *quoted = PQescapeIdentifier(db, names[i], strlen(names[i]));
        snprintf(text, sizeof text, "CREATE PUBLICATION %s FOR TABLE item", quoted);
        sql(text);
        assert_int_equal(pg_stream_open(&seen.stream, &options, &error), 0);
        start_stream(&seen);
        sql("INSERT INTO item SELECT count(*) FROM item");
        run_until(&seen.commits, 1);
        assert_int_equal(seen.inserts, 1);
        close_stream(&seen);
        snprintf(text, sizeof text, "DROP PUBLICATION %s", quoted);
        sql(text);
        PQfreemem(quoted);
    }
}

static void a_refused_message_ends_the_stream(void **state)
{
    struct seen seen = {.refuse = -EPROTO};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    expect_lost_once(&seen);
    assert_int_equal(seen.messages, 1);
    close_stream(&seen);
}

static void lost_and_close(void *arg, const struct pg_error *error)
{
    struct seen *seen = arg;
    see_lost(arg, error);
    pg_stream_close(seen->stream, see_closed, seen);
    assert_int_equal(seen->closed, 0);
}

static void a_stream_can_be_closed_when_it_is_lost(void **state)
{
    static const struct pg_stream_events events = {see_message, see_position, lost_and_close};
    struct seen seen = {0};
    struct pg_error error;
    (void)state;
    open_stream(&seen, "");
    assert_int_equal(pg_stream_start(seen.stream, &loop, &events, &seen, &error), 0);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    terminate_walsender();
    run_until(&seen.closed, 1);
    assert_int_equal(seen.lost, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_loop(a_terminated_walsender_is_told_with_its_words),
        in_a_loop(a_walsender_that_ended_before_the_start_is_told),
        in_a_loop(what_was_sent_before_the_end_is_delivered),
        in_a_loop(a_paused_stream_learns_of_its_end),
        in_a_loop(a_killed_server_is_told),
        in_a_loop(a_server_that_shuts_down_is_told),
        in_a_loop(a_server_that_shuts_down_does_not_wait_for_a_stream_that_never_confirmed),
        in_a_loop(a_publication_that_is_not_there_is_told_at_the_first_change),
        in_a_loop(a_publications_name_may_hold_anything),
        in_a_loop(a_refused_message_ends_the_stream),
        in_a_loop(a_stream_can_be_closed_when_it_is_lost),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
