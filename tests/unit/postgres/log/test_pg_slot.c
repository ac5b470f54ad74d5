#include "fakes/receiver.h"

#include <pthread.h>

/* Opening. */

static void expect_refusal(const char *more, int status, const char *words)
{
    struct pg_stream *stream = NULL;
    struct pg_error error;
    assert_int_equal(try_open(&stream, more, &error), status);
    assert_null(stream);
    if (!strcasestr(error.text, words))
        fail_msg("not \"%s\": %s", words, error.text);
}

static void a_role_without_the_privilege_is_refused(void **state)
{
    (void)state;
    expect_refusal("user=locked password=secret", -ECONNREFUSED, "replication");
}

static void a_server_that_does_not_log_enough_is_refused(void **state)
{
    (void)state;
    set_in_server("wal_level = 'replica'");
    restart_server(SIGINT);
    expect_refusal("", -EPROTO, "wal_level");
    set_in_server("wal_level = 'logical'");
    restart_server(SIGINT);
}

static void a_server_without_free_slots_is_refused(void **state)
{
    struct pg_stream *streams[10];
    struct pg_error error;
    (void)state;
    for (int i = 0; i < 10; i++)
        assert_int_equal(try_open(&streams[i], "", &error), 0);
    assert_int_equal(atoi(sql("SELECT count(DISTINCT slot_name) FROM pg_replication_slots")), 10);
    struct pg_stream *stream = NULL;
    assert_true(try_open(&stream, "", &error) < 0);
    assert_string_equal(error.sqlstate, "53300"); /* of senders there are as many */
    for (int i = 0; i < 10; i++)
        pg_stream_close(streams[i], NULL, NULL);
}

static void no_server_and_no_sense_are_told(void **state)
{
    char more[40];
    (void)state;
    snprintf(more, sizeof more, "port=%d", free_port());
    expect_refusal(more, -ECONNREFUSED, "refused");
    expect_refusal("nonsense=1", -ECONNREFUSED, "nonsense");
    expect_refusal("dbname=nowhere", -ECONNREFUSED, "nowhere");
}

static void the_slot_is_temporary_and_carries_our_name(void **state)
{
    struct seen seen = {0};
    char wanted[100];
    (void)state;
    open_stream(&seen, "");
    snprintf(wanted, sizeof wanted, "nestguard_%ld_", (long)getpid());
    const char *name = sql("SELECT slot_name FROM pg_replication_slots WHERE temporary AND "
                           "plugin = 'pgoutput' AND database = 'postgres'");
    assert_memory_equal(name, wanted, strlen(wanted));
    assert_int_equal(strlen(name), strlen(wanted) + 16);
    assert_true(lsn_of(sql("SELECT confirmed_flush_lsn FROM pg_replication_slots")) ==
                pg_stream_consistent_point(seen.stream));
    pg_stream_close(seen.stream, NULL, NULL);
}

static void the_operators_application_name_counts(void **state)
{
    static const char query[] = "SELECT application_name FROM pg_stat_activity "
                                "WHERE backend_type = 'walsender'";
    struct seen seen = {0};
    (void)state;
    open_stream(&seen, "");
    assert_string_equal(sql(query), "guard");
    pg_stream_close(seen.stream, NULL, NULL);
    run_until_sql(query, "");
    open_stream(&seen, "application_name=standby");
    assert_string_equal(sql(query), "standby");
    pg_stream_close(seen.stream, NULL, NULL);
}

static void a_uri_will_do(void **state)
{
    struct seen seen = {0};
    struct pg_error error;
    char uri[120];
    (void)state;
    snprintf(uri, sizeof uri, "postgresql://postgres@127.0.0.1:%d/postgres?application_name=uri",
             server.port);
    const struct pg_stream_options options = {.conninfo = uri, .publication = "pub"};
    assert_int_equal(pg_stream_open(&seen.stream, &options, &error), 0);
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    assert_string_equal(sql("SELECT application_name FROM pg_stat_replication"), "uri");
    close_stream(&seen);
}

static void limits_for_queries_do_not_end_the_snapshot(void **state)
{
    struct seen seen = {0};
    char import[100];
    (void)state;
    open_stream(&seen, "options='-c idle_in_transaction_session_timeout=100ms "
                       "-c idle_session_timeout=100ms -c statement_timeout=100ms'");
    run_for(500);
    snprintf(import, sizeof import, "SET TRANSACTION SNAPSHOT '%s'",
             pg_stream_snapshot(seen.stream));
    sql("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    sql(import);
    sql("COMMIT");
    start_stream(&seen);
    sql("INSERT INTO item VALUES (1)");
    run_until(&seen.commits, 1);
    close_stream(&seen);
}

static void *stop_soon(void *arg)
{
    usleep(300000);
    atomic_store((atomic_bool *)arg, true);
    return NULL;
}

/* A slot waits for the transactions that are under way. */
static void waiting_for_a_long_transaction_can_be_stopped(void **state)
{
    PGconn *writer = PQconnectdb(conninfo(""));
    pthread_t thread;
    (void)state;
    ask_on(writer, "BEGIN; INSERT INTO item VALUES (1)");
    assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stop), 0);
    uint64_t start = now_ms();
    expect_refusal("", -ECANCELED, "stopped");
    assert_in_range(now_ms() - start, 250, 3000);
    pthread_join(thread, NULL);
    atomic_store(&stop, false);
    ask_on(writer, "COMMIT");
    PQfinish(writer);
}

/* The snapshot and the stream. */

enum { WRITERS = 3, IDS_EACH = 100000 };

struct writer {
    pthread_t thread;
    int first;
    atomic_int count; /* of ids that were tried */
    atomic_bool *enough;
    unsigned char *committed; /* by id */
};

/* Transactions of one to five rows, every seventh of which is rolled back; some with a savepoint
 * that is. */
static void *write_rows(void *arg)
{
    struct writer *writer = arg;
    PGconn *pq = PQconnectdb(conninfo(""));
    for (int turn = 0; !atomic_load(writer->enough) && writer->count < IDS_EACH - 10; turn++) {
        int rows = 1 + turn % 5, id = writer->first + writer->count;
        char text[300];
        snprintf(text, sizeof text,
                 "BEGIN; INSERT INTO item SELECT generate_series(%d, %d); SAVEPOINT a; "
                 "INSERT INTO item VALUES (%d); ROLLBACK TO a; %s",
                 id, id + rows - 1, id + rows, turn % 7 == 6 ? "ROLLBACK" : "COMMIT");
        PGresult *result = PQexec(pq, text);
        if (PQresultStatus(result) != PGRES_COMMAND_OK)
            abort();
        PQclear(result);
        memset(writer->committed + id, turn % 7 != 6, (size_t)rows);
        atomic_fetch_add(&writer->count, rows + 1);
    }
    PQfinish(pq);
    return NULL;
}

static void read_snapshot(const char *snapshot, unsigned char *ids)
{
    char import[100];
    PGconn *pq = PQconnectdb(conninfo(""));
    snprintf(import, sizeof import, "SET TRANSACTION SNAPSHOT '%s'", snapshot);
    ask_on(pq, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    ask_on(pq, import);
    PGresult *result = PQexec(pq, "SELECT id FROM item");
    for (int i = 0; i < PQntuples(result); i++)
        ids[atoi(PQgetvalue(result, i, 0))]++;
    PQclear(result);
    PQfinish(pq);
}

static size_t count_ids(const unsigned char *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < WRITERS * IDS_EACH; i++)
        count += ids[i];
    return count;
}

static void run_until_position(struct seen *seen, uint64_t lsn)
{
    for (uint64_t until = now_ms() + PATIENCE_MS; seen->position < lsn; run_for(STEP_MS)) {
        pg_stream_ask(seen->stream);
        assert_true(now_ms() < until);
    }
}

static void every_row_is_in_the_snapshot_or_in_the_stream(void **state)
{
    struct seen seen = {.confirms = true, .ids = calloc(WRITERS * IDS_EACH, 1)};
    unsigned char *committed = calloc(WRITERS * IDS_EACH, 1);
    unsigned char *before = calloc(WRITERS * IDS_EACH, 1);
    struct writer writers[WRITERS];
    atomic_bool enough = false;
    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] =
            (struct writer){.first = i * IDS_EACH, .enough = &enough, .committed = committed};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]), 0);
    }
    usleep(200000);
    open_stream(&seen, "");
    usleep(200000);
    read_snapshot(pg_stream_snapshot(seen.stream), before);
    start_stream(&seen);
    run_for(300);
    atomic_store(&enough, true);
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    run_until_position(&seen, lsn_of(sql("SELECT pg_current_wal_lsn()")));
    for (size_t i = 0; i < WRITERS * IDS_EACH; i++)
        if (before[i] + seen.ids[i] != committed[i])
            fail_msg("row %zu: %d in the snapshot, %d in the stream", i, before[i], seen.ids[i]);
    print_message("%zu rows in the snapshot, %zu in the stream\n", count_ids(before),
                  count_ids(seen.ids));
    assert_true(count_ids(before) > 0 && count_ids(seen.ids) > 0);
    close_stream(&seen);
    free(committed);
    free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_a_loop(a_role_without_the_privilege_is_refused),
        in_a_loop(a_server_that_does_not_log_enough_is_refused),
        in_a_loop(a_server_without_free_slots_is_refused),
        in_a_loop(no_server_and_no_sense_are_told),
        in_a_loop(the_slot_is_temporary_and_carries_our_name),
        in_a_loop(the_operators_application_name_counts),
        in_a_loop(a_uri_will_do),
        in_a_loop(limits_for_queries_do_not_end_the_snapshot),
        in_a_loop(waiting_for_a_long_transaction_can_be_stopped),
        in_a_loop(every_row_is_in_the_snapshot_or_in_the_stream),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
