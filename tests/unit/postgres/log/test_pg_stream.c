#include "fakes/receiver.h"

static void a_stream_brings_what_is_committed_after_its_slot(void **state)
{
    struct seen seen = {0};
    (void)state;
    sql("INSERT INTO item VALUES (1), (2)");
    open_stream(&seen, "");
    sql("INSERT INTO item VALUES (10), (20)");
    sql("BEGIN; INSERT INTO item VALUES (4000); ROLLBACK");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (300)");
    run_until(&seen.commits, 2);
    assert_int_equal(seen.sum, 330);
    assert_true(seen.end > pg_stream_consistent_point(seen.stream));
    assert_true(seen.end <= lsn_of(sql("SELECT pg_current_wal_lsn()")));
    close_stream(&seen);
}

/* Confirming. */

static void a_confirmed_position_reaches_the_slot(void **state)
{
    struct seen seen = {.confirms = true};
    char wanted[200];
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    snprintf(wanted, sizeof wanted,
             "SELECT confirmed_flush_lsn >= '%" PRIX32 "/%" PRIX32 "' FROM pg_replication_slots",
             (uint32_t)(seen.end >> 32), (uint32_t)seen.end);
    run_until_sql(wanted, "t");
    close_stream(&seen);
}

static void nothing_is_confirmed_by_itself(void **state)
{
    struct seen seen = {0};
    char point[64];
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    snprintf(point, sizeof point, "%s",
             sql("SELECT confirmed_flush_lsn FROM pg_replication_slots"));
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    run_for(1500);
    assert_string_equal(sql("SELECT confirmed_flush_lsn FROM pg_replication_slots"), point);
    assert_int_equal(seen.lost, 0);
    close_stream(&seen);
}

/* Or a commit would return because of a stream whose rows nobody looks up yet. */
static void before_anything_is_confirmed_it_is_no_standby_to_wait_for(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    run_for(1500);
    run_until_sql("SELECT write_lsn IS NOT NULL FROM pg_stat_replication", "t");
    assert_string_equal(sql("SELECT flush_lsn IS NULL AND replay_lsn IS NULL"
                            " FROM pg_stat_replication"),
                        "t");
    pg_stream_confirm(seen.stream, seen.end);
    run_until_sql("SELECT flush_lsn IS NOT NULL FROM pg_stat_replication", "t");
    close_stream(&seen);
}

static void a_lower_confirmation_takes_nothing_back(void **state)
{
    struct seen seen = {0};
    char reached[64];
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    pg_stream_confirm(seen.stream, seen.end);
    run_until_sql("SELECT replay_lsn IS NOT NULL AND replay_lsn = sent_lsn "
                  "FROM pg_stat_replication",
                  "t");
    snprintf(reached, sizeof reached, "%s", sql("SELECT replay_lsn FROM pg_stat_replication"));
    pg_stream_confirm(seen.stream, 1);
    run_for(100);
    assert_string_equal(sql("SELECT replay_lsn FROM pg_stat_replication"), reached);
    close_stream(&seen);
}

/* Runs the loop while the statement is under way, `limit_ms` at most. How long, in microseconds. */
static uint64_t run_query(PGconn *pq, uint64_t limit_ms)
{
    uint64_t start = uv_hrtime();
    while (PQisBusy(pq) && uv_hrtime() - start < limit_ms * 1000000) {
        uv_run(&loop, UV_RUN_NOWAIT);
        assert_int_equal(PQconsumeInput(pq), 1);
    }
    return (uv_hrtime() - start) / 1000;
}

static uint64_t run_insert(PGconn *pq)
{
    assert_int_equal(PQsendQuery(pq, "INSERT INTO item SELECT max(id) + 1 FROM item"), 1);
    uint64_t us = run_query(pq, PATIENCE_MS);
    for (PGresult *result; (result = PQgetResult(pq)); PQclear(result))
        assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    return us;
}

static void a_confirmation_lets_a_waiting_commit_go(void **state)
{
    struct seen seen = {0};
    PGconn *writer = PQconnectdb(conninfo(""));
    (void)state;
    open_stream(&seen, "application_name=standby");
    start_stream(&seen);
    pg_stream_confirm(seen.stream, pg_stream_consistent_point(seen.stream));
    name_standbys("standby");
    run_until_sql("SELECT sync_state FROM pg_stat_replication WHERE state = 'streaming'", "sync");
    size_t inserted = insert_until_one_waits(writer);
    run_until(&seen.commits, inserted);
    assert_true(PQisBusy(writer));
    pg_stream_confirm(seen.stream, seen.end);
    run_query(writer, PATIENCE_MS);
    assert_false(PQisBusy(writer));
    PQclear(PQgetResult(writer));
    PQclear(PQgetResult(writer));
    seen.confirms = true;
    uint64_t sum = 0;
    for (int i = 0; i < 200; i++)
        sum += run_insert(writer);
    print_message("a commit that waits for its confirmation takes %.2f ms\n", (double)sum / 200e3);
    assert_int_equal(seen.commits, inserted + 200);
    name_standbys("");
    close_stream(&seen);
    PQfinish(writer);
}

/* Positions. */

static void an_idle_server_tells_its_position_at_once(void **state)
{
    struct seen seen = {.confirms = true};
    uint64_t best = UINT64_MAX;
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    pg_stream_ask(seen.stream);
    run_until(&seen.positions, 1);
    for (int i = 0; i < 20; i++) {
        run_for(20);
        uint64_t start = uv_hrtime();
        pg_stream_ask(seen.stream);
        run_until(&seen.positions, seen.positions + 1);
        if (uv_hrtime() - start < best)
            best = uv_hrtime() - start;
    }
    print_message("an answer takes %.3f ms\n", (double)best / 1e6);
    assert_true(best < 4 * 1000000);
    assert_true(seen.position >= pg_stream_consistent_point(seen.stream));
    close_stream(&seen);
}

static void asking_often_in_a_turn_asks_once(void **state)
{
    struct seen seen = {.confirms = true};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    pg_stream_ask(seen.stream);
    run_until(&seen.positions, 1);
    run_for(300);
    size_t before = seen.positions;
    for (int i = 0; i < 100; i++)
        pg_stream_ask(seen.stream);
    run_for(300);
    assert_in_range(seen.positions - before, 1, 5);
    close_stream(&seen);
}

static void positions_advance_past_what_is_not_followed(void **state)
{
    struct seen seen = {.confirms = true};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("CREATE TABLE other AS SELECT generate_series(1, 20000)");
    sql("DROP TABLE other");
    uint64_t now = lsn_of(sql("SELECT pg_current_wal_lsn()"));
    for (uint64_t until = now_ms() + PATIENCE_MS; seen.position < now; run_for(STEP_MS)) {
        pg_stream_ask(seen.stream);
        assert_true(now_ms() < until);
    }
    assert_int_equal(seen.inserts, 0);
    close_stream(&seen);
}

/* A second would be too long here: it is the server's own questions that keep it alive. */
static void a_server_that_wants_a_reply_has_it(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "options='-c wal_sender_timeout=900ms'");
    start_stream(&seen);
    run_for(3000);
    assert_int_equal(seen.lost, 0);
    sql("INSERT INTO item VALUES (7)");
    run_until(&seen.inserts, 1);
    close_stream(&seen);
}

/* Pausing. */

static void a_paused_stream_holds_messages_back(void **state)
{
    struct seen seen = {0};
    char replied[160];
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    size_t positions = seen.positions;
    pg_stream_pause(seen.stream, true);
    pg_stream_ask(seen.stream);
    sql("INSERT INTO item VALUES (20)");
    run_for(300);
    assert_int_equal(seen.commits, 1);
    assert_int_equal(seen.positions, positions);
    snprintf(replied, sizeof replied,
             "SELECT reply_time > '%s' FROM pg_stat_replication WHERE pid > 0",
             sql("SELECT reply_time FROM pg_stat_replication"));
    run_until_sql(replied, "t");
    pg_stream_pause(seen.stream, false);
    run_until(&seen.commits, 2);
    assert_int_equal(seen.sum, 21);
    close_stream(&seen);
}

static void pause_now(struct seen *seen)
{
    pg_stream_pause(seen->stream, true);
}

static void a_pause_holds_from_the_very_next_message(void **state)
{
    struct seen seen = {.on_insert = pause_now};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item SELECT generate_series(1, 50)");
    for (size_t i = 1; i <= 50; i++) {
        run_until(&seen.inserts, i);
        run_for(10);
        assert_int_equal(seen.inserts, i);
        assert_int_equal(seen.commits, 0);
        pg_stream_pause(seen.stream, false);
    }
    run_until(&seen.commits, 1);
    close_stream(&seen);
}

static void a_paused_stream_does_not_fill_memory(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    pg_stream_pause(seen.stream, true);
    sql("INSERT INTO item SELECT generate_series(1, 400000)");
    run_for(1500);
    assert_int_equal(seen.messages, 0);
    /* The server could not get rid of them: they are neither here nor in the sockets. */
    assert_string_equal(sql("SELECT sent_lsn < pg_current_wal_lsn() FROM pg_stat_replication"),
                        "t");
    pg_stream_pause(seen.stream, false);
    run_until(&seen.commits, 1);
    assert_int_equal(seen.inserts, 400000);
    close_stream(&seen);
}

/* Load. */

static uv_prepare_t prepare;
static uint64_t last_turn, longest_turn;

static void watch_turn(uv_prepare_t *handle)
{
    uint64_t now = uv_hrtime();
    (void)handle;
    if (last_turn && now - last_turn > longest_turn)
        longest_turn = now - last_turn;
    last_turn = now;
}

static void a_flood_does_not_hold_up_the_loop(void **state)
{
    struct seen seen = {.confirms = true};
    (void)state;
    open_stream(&seen, "");
    sql("DO $$ BEGIN FOR i IN 0 .. 1999 LOOP FOR j IN 1 .. 100 LOOP "
        "INSERT INTO item VALUES (i * 100 + j); END LOOP; COMMIT; END LOOP; END $$");
    uv_prepare_init(&loop, &prepare);
    uv_prepare_start(&prepare, watch_turn);
    last_turn = longest_turn = 0;
    uint64_t start = uv_hrtime();
    start_stream(&seen);
    run_until(&seen.commits, 2000);
    double seconds = (double)(uv_hrtime() - start) / 1e9;
    print_message("%.0f messages a second; the longest turn took %.1f ms\n",
                  (double)seen.messages / seconds, (double)longest_turn / 1e6);
    assert_int_equal(seen.inserts, 200000);
    assert_int_equal(seen.sum, INT64_C(200000) * 200001 / 2);
    assert_true(longest_turn < (uint64_t)500 * 1000000);
    close_stream(&seen);
    uv_close((uv_handle_t *)&prepare, NULL);
}

static void a_message_of_many_megabytes_arrives(void **state)
{
    struct seen seen = {0};
    (void)state;
    sql("CREATE TABLE big (id bigint, body text)");
    sql("ALTER PUBLICATION pub ADD TABLE big");
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO big VALUES (5, repeat('x', 30000000)), (6, NULL)");
    run_until(&seen.commits, 1);
    assert_int_equal(seen.sum, 11);
    close_stream(&seen);
    sql("DROP TABLE big");
}

/* A certificate signed by itself, for the server's user alone to read. */
static bool encrypt_server(void)
{
    char command[512];
    snprintf(command, sizeof command,
             "cd %s/data && openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
             "-keyout server.key -out server.crt 2>/dev/null && chmod 600 server.key && "
             "chown --reference=postgresql.conf server.key server.crt",
             server.dir);
    if (system(command) != 0)
        return false;
    set_in_server("ssl = on");
    sql("SELECT pg_reload_conf()");
    run_until_sql("SHOW ssl", "on");
    return true;
}

/* Rows of many sizes end in many places of TLS's records. */
static void an_encrypted_stream_is_never_behind(void **state)
{
    struct seen seen = {.confirms = true};
    uint64_t longest = 0;
    (void)state;
    if (!encrypt_server())
        skip();
    sql("CREATE TABLE big (id bigint, body text)");
    sql("ALTER PUBLICATION pub ADD TABLE big");
    open_stream(&seen, "sslmode=require");
    start_stream(&seen);
    for (size_t i = 1; i <= 120; i++) {
        char insert[200];
        snprintf(insert, sizeof insert,
                 "INSERT INTO big SELECT g, repeat('x', %zu) FROM generate_series(1, %zu) g",
                 i * 331, 1 + i % 7);
        sql(insert);
        uint64_t start = uv_hrtime();
        run_until(&seen.commits, i);
        if (uv_hrtime() - start > longest)
            longest = uv_hrtime() - start;
    }
    assert_string_equal(sql("SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_replication USING (pid) "
                            "WHERE ssl"),
                        "1");
    print_message("the latest commit came after %.1f ms\n", (double)longest / 1e6);
    assert_true(longest < (uint64_t)300 * 1000000);
    close_stream(&seen);
    sql("DROP TABLE big");
}

/* Closing. */

static void close_now(struct seen *seen)
{
    pg_stream_close(seen->stream, see_closed, seen);
}

static void a_stream_can_be_closed_while_it_delivers(void **state)
{
    struct seen seen = {.on_insert = close_now};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    sql("INSERT INTO item SELECT generate_series(1, 100)");
    run_until(&seen.closed, 1);
    assert_int_equal(seen.inserts, 1);
    assert_int_equal(seen.lost, 0);
}

static void a_stream_can_be_closed_as_soon_as_it_is_started(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    start_stream(&seen);
    pg_stream_ask(seen.stream);
    close_stream(&seen);
    assert_int_equal(seen.positions + seen.messages, 0);
}

static void a_stream_that_was_not_started_is_closed_at_once(void **state)
{
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    pg_stream_close(seen.stream, see_closed, &seen);
    assert_int_equal(seen.closed, 1);
    open_stream(&seen, "");
    pg_stream_close(seen.stream, NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_loop(a_stream_brings_what_is_committed_after_its_slot),
        in_a_loop(a_confirmed_position_reaches_the_slot),
        in_a_loop(nothing_is_confirmed_by_itself),
        in_a_loop(before_anything_is_confirmed_it_is_no_standby_to_wait_for),
        in_a_loop(a_lower_confirmation_takes_nothing_back),
        in_a_loop(a_confirmation_lets_a_waiting_commit_go),
        in_a_loop(an_idle_server_tells_its_position_at_once),
        in_a_loop(asking_often_in_a_turn_asks_once),
        in_a_loop(positions_advance_past_what_is_not_followed),
        in_a_loop(a_server_that_wants_a_reply_has_it),
        in_a_loop(a_paused_stream_holds_messages_back),
        in_a_loop(a_pause_holds_from_the_very_next_message),
        in_a_loop(a_paused_stream_does_not_fill_memory),
        in_a_loop(a_flood_does_not_hold_up_the_loop),
        in_a_loop(a_message_of_many_megabytes_arrives),
        in_a_loop(an_encrypted_stream_is_never_behind),
        in_a_loop(a_stream_can_be_closed_while_it_delivers),
        in_a_loop(a_stream_can_be_closed_as_soon_as_it_is_started),
        in_a_loop(a_stream_that_was_not_started_is_closed_at_once),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
