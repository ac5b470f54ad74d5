#include "fakes/receiver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct server server;

PGconn *db;

uv_loop_t loop;

uv_timer_t step;

atomic_bool stop;

const char *conninfo(const char *more)
{
    static char text[4][512];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, sizeof text[0], "host=127.0.0.1 port=%d user=postgres dbname=postgres %s",
             server.port, more);
    return out;
}

const char *ask_on(PGconn *pq, const char *sql)
{
    static char value[256];
    PGresult *result = PQexec(pq, sql);
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(pq));
    snprintf(value, sizeof value, "%s", PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "");
    PQclear(result);
    return value;
}

const char *sql(const char *statement)
{
    return ask_on(db, statement);
}

uint64_t lsn_of(const char *text)
{
    uint32_t high = 0, low = 0;
    assert_int_equal(sscanf(text, "%" SCNx32 "/%" SCNx32, &high, &low), 2);
    return (uint64_t)high << 32 | low;
}

uint64_t now_ms(void)
{
    return uv_hrtime() / 1000000;
}

enum { XID_SIZE = 4 };

static uint64_t big_endian(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return be64toh(value);
}

/* Insert: 'I', relation, 'N', number of columns, then for each 't', length, text. In a streamed
 * block the transaction's id comes before the relation. */
static void see_insert(struct seen *seen, const char *bytes, size_t length)
{
    char id[24] = "";
    bytes += seen->in_block ? XID_SIZE : 0;
    length -= seen->in_block ? XID_SIZE : 0;
    assert_true(length > 13 && bytes[5] == 'N' && bytes[8] == 't');
    uint32_t size;
    memcpy(&size, bytes + 9, sizeof size);
    size = be32toh(size);
    assert_true(size < sizeof id && 13 + size <= length);
    memcpy(id, bytes + 13, size);
    seen->inserts++;
    seen->sum += atoll(id);
    if (seen->ids)
        seen->ids[atoll(id)]++;
    if (seen->on_insert)
        seen->on_insert(seen);
}

/* Commit: 'C', flags, where the commit is, where it ends. */
static void see_commit(struct seen *seen, const char *bytes, size_t length)
{
    assert_int_equal(length, 26);
    seen->commits++;
    seen->end = big_endian(bytes + 10);
    if (seen->confirms)
        pg_stream_confirm(seen->stream, seen->end);
}

int see_message(void *arg, uint64_t lsn, const char *bytes, size_t length)
{
    struct seen *seen = arg;
    (void)lsn;
    assert_int_equal(seen->lost + seen->closed, 0);
    seen->messages++;
    if (strchr("SE", bytes[0]))
        seen->in_block = bytes[0] == 'S';
    if (bytes[0] == 'I')
        see_insert(seen, bytes, length);
    else if (bytes[0] == 'C')
        see_commit(seen, bytes, length);
    else if (bytes[0] == 'c')
        see_commit(seen, bytes + XID_SIZE, length - XID_SIZE);
    return seen->refuse;
}

void see_position(void *arg, uint64_t lsn)
{
    struct seen *seen = arg;
    assert_int_equal(seen->lost + seen->closed, 0);
    seen->positions++;
    seen->position = lsn;
    if (seen->confirms)
        pg_stream_confirm(seen->stream, lsn);
}

void see_lost(void *arg, const struct pg_error *error)
{
    struct seen *seen = arg;
    seen->lost++;
    seen->error = *error;
}

void see_closed(void *arg)
{
    struct seen *seen = arg;
    seen->closed++;
}

const struct pg_stream_events seeing = {see_message, see_position, see_lost};

static void on_step(uv_timer_t *timer)
{
    (void)timer;
}

void run_for(uint64_t ms)
{
    for (uint64_t until = now_ms() + ms; now_ms() < until;)
        uv_run(&loop, UV_RUN_ONCE);
}

void run_until(const size_t *counter, size_t wanted)
{
    for (uint64_t until = now_ms() + PATIENCE_MS; *counter < wanted;) {
        uv_run(&loop, UV_RUN_ONCE);
        if (now_ms() >= until)
            fail_msg("waited in vain: %zu instead of %zu", *counter, wanted);
    }
}

/* Runs the loop until a query answers as wanted; false: in vain. */
static bool runs_until_sql(const char *query, const char *wanted)
{
    for (uint64_t until = now_ms() + PATIENCE_MS; strcmp(sql(query), wanted) != 0;) {
        run_for(STEP_MS);
        if (now_ms() >= until)
            return false;
    }
    return true;
}

void run_until_sql(const char *query, const char *wanted)
{
    if (!runs_until_sql(query, wanted))
        fail_msg("waited in vain for %s: %s", wanted, query);
}

void set_in_server(const char *assignment)
{
    char text[160];
    snprintf(text, sizeof text, "ALTER SYSTEM SET %s", assignment);
    sql(text);
}

void start_insert(PGconn *pq)
{
    assert_int_equal(PQsendQuery(pq, "INSERT INTO item SELECT count(*) + 1 FROM item"), 1);
}

bool is_busy(PGconn *pq)
{
    assert_int_equal(PQconsumeInput(pq), 1);
    return PQisBusy(pq);
}

void finish_insert(PGconn *pq)
{
    for (uint64_t until = now_ms() + PATIENCE_MS; is_busy(pq); run_for(1))
        assert_true(now_ms() < until);
    for (PGresult *result; (result = PQgetResult(pq)); PQclear(result))
        assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
}

void name_standbys(const char *names)
{
    char text[100];
    snprintf(text, sizeof text, "synchronous_standby_names = '%s'", names);
    set_in_server(text);
    sql("SELECT pg_reload_conf()");
    run_until_sql("SHOW synchronous_standby_names", names);
}

bool waits_for_standby(PGconn *pq)
{
    char query[100];
    snprintf(query, sizeof query, "SELECT wait_event FROM pg_stat_activity WHERE pid = %d",
             PQbackendPID(pq));
    return strcmp(sql(query), "SyncRep") == 0;
}

size_t insert_until_one_waits(PGconn *pq)
{
    uint64_t until = now_ms() + PATIENCE_MS;
    for (size_t inserted = 1;; inserted++) {
        start_insert(pq);
        for (; is_busy(pq); run_for(1)) {
            if (waits_for_standby(pq))
                return inserted;
            assert_true(now_ms() < until);
        }
        finish_insert(pq);
    }
}

int try_open(struct pg_stream **out, const char *more, struct pg_error *error)
{
    const struct pg_stream_options options = {.conninfo = conninfo(more),
                                              .application = "guard",
                                              .connect_timeout = 10,
                                              .stop = &stop,
                                              .publication = "pub"};
    memset(error, '#', sizeof *error);
    return pg_stream_open(out, &options, error);
}

void open_stream(struct seen *seen, const char *more)
{
    struct pg_error error;
    if (try_open(&seen->stream, more, &error) < 0)
        fail_msg("no stream: %s", error.text);
}

void start_stream(struct seen *seen)
{
    struct pg_error error;
    if (pg_stream_start(seen->stream, &loop, &seeing, seen, &error) < 0)
        fail_msg("no start: %s", error.text);
}

void close_stream(struct seen *seen)
{
    struct seen before;
    pg_stream_close(seen->stream, see_closed, seen);
    before = *seen;
    run_until(&seen->closed, 1);
    assert_int_equal(seen->messages, before.messages);
    assert_int_equal(seen->positions, before.positions);
    assert_int_equal(seen->lost, before.lost);
    free(seen->ids);
    seen->ids = NULL;
}

int open_loop(void **state)
{
    (void)state;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &step);
    uv_timer_start(&step, on_step, STEP_MS, STEP_MS);
    sql("TRUNCATE item");
    return 0;
}

/* A test that failed leaves its stream open, in a loop that is never run again: neither the next
 * test nor the server's end shall wait for it. */
static void expect_no_slot(void)
{
    static const char query[] = "SELECT count(*) FROM pg_replication_slots";
    if (runs_until_sql(query, "0"))
        return;
    sql("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_replication");
    fail_msg("a stream was still open");
}

int close_loop(void **state)
{
    (void)state;
    expect_no_slot();
    uv_close((uv_handle_t *)&step, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    return 0;
}

void connect_db(void)
{
    PQfinish(db);
    db = PQconnectdb(conninfo(""));
    if (PQstatus(db) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(db));
}

int start_server(void **state)
{
    (void)state;
    postgres_create(&server);
    connect_db();
    sql("CREATE TABLE item (id bigint PRIMARY KEY)");
    sql("CREATE PUBLICATION pub FOR TABLE item");
    return 0;
}

int end_server(void **state)
{
    (void)state;
    PQfinish(db);
    server_destroy(&server);
    return 0;
}

void restart_server(int signal)
{
    server_kill(&server, signal);
    postgres_start(&server);
    connect_db();
}
