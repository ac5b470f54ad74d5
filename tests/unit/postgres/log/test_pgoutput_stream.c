/* Transactions that PostgreSQL streams while they are in progress (protocol version 2). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pgoutput_server.h"

enum { KEYS = 40000, HELD = 2 * KEYS };

/* What a follower knows: insertions that wait for their transaction's end, and those that came. */
static struct {
    struct held {
        uint32_t xid, subxid, key;
        bool dropped;
    } held[HELD];
    size_t count;
    uint32_t streaming; /* the transaction whose block this is; else 0 */
    unsigned starts, first_segments, commits, aborts;
    uint8_t committed[KEYS];
} follower;

static uint32_t key_of(struct pgoutput_tuple tuple)
{
    struct pgoutput_value value;
    char digits[16] = "";
    assert_true(pgoutput_tuple_next(&tuple, &value));
    assert_in_range(value.length, 1, sizeof digits - 1);
    memcpy(digits, value.at, value.length);
    uint32_t key = (uint32_t)strtoul(digits, NULL, 10);
    assert_in_range(key, 0, KEYS - 1);
    return key;
}

static void follow_insert(const struct pgoutput_event *event)
{
    uint32_t key = key_of(event->new_tuple);
    assert_true((follower.streaming != 0) == (event->xid != 0));
    if (!follower.streaming) {
        follower.committed[key]++;
        return;
    }
    assert_true(follower.count < HELD);
    follower.held[follower.count++] =
        (struct held){.xid = follower.streaming, .subxid = event->xid, .key = key};
}

/* A whole transaction is aborted as its own subtransaction. */
static void follow_abort(const struct pgoutput_event *event)
{
    follower.aborts++;
    for (size_t i = 0; i < follower.count; i++) {
        struct held *held = &follower.held[i];
        if (held->xid == event->xid &&
            (event->subxid == event->xid || held->subxid == event->subxid))
            held->dropped = true;
    }
}

static void follow_commit(const struct pgoutput_event *event)
{
    follower.commits++;
    assert_true(event->lsn > 0 && event->end_lsn > event->lsn && event->time_us > 0);
    for (size_t i = 0; i < follower.count; i++) {
        struct held *held = &follower.held[i];
        if (held->xid == event->xid && !held->dropped) {
            follower.committed[held->key]++;
            held->dropped = true;
        }
    }
}

static void follow(void *arg, const struct pgoutput_event *event)
{
    (void)arg;
    if (event->kind == PGOUTPUT_STREAM_START) {
        follower.starts++;
        follower.first_segments += event->first_segment;
        follower.streaming = event->xid;
    } else if (event->kind == PGOUTPUT_STREAM_STOP) {
        follower.streaming = 0;
    } else if (event->kind == PGOUTPUT_INSERT) {
        follow_insert(event);
    } else if (event->kind == PGOUTPUT_STREAM_ABORT) {
        follow_abort(event);
    } else if (event->kind == PGOUTPUT_STREAM_COMMIT) {
        follow_commit(event);
    }
}

static const char streaming[] = "'proto_version', '2', 'streaming', 'on'";

static void follow_log(const char *how)
{
    memset(&follower, 0, sizeof follower);
    read_changes(how, "p", streaming, follow, NULL);
}

static void expect_committed_rows(void)
{
    static uint8_t wanted[KEYS];
    memset(wanted, 0, sizeof wanted);
    PGresult *result = query(pq, "SELECT id FROM items");
    for (int i = 0; i < PQntuples(result); i++)
        wanted[strtoul(PQgetvalue(result, i, 0), NULL, 10)] = 1;
    PQclear(result);
    assert_memory_equal(follower.committed, wanted, sizeof wanted);
}

static void insert_range(PGconn *session, unsigned from, unsigned count)
{
    char sql[128];
    snprintf(sql, sizeof sql,
             "INSERT INTO items SELECT i, 'name ' || i FROM generate_series(%u, %u) i", from,
             from + count - 1);
    PQclear(query(session, sql));
}

/* Every third subtransaction is rolled back. */
static void insert_in_subtransactions(unsigned from)
{
    for (unsigned i = 0; i < 9; i++) {
        run("SAVEPOINT s");
        insert_range(pq, from + i * 1000, 1000);
        run(i % 3 == 1 ? "ROLLBACK TO s" : "RELEASE s");
    }
}

static void a_large_transaction_is_streamed_and_commits_what_it_kept(void **state)
{
    (void)state;
    run("SET logical_decoding_work_mem = '64kB'; BEGIN");
    insert_range(pq, 0, 500);
    insert_in_subtransactions(1000);
    run("COMMIT; INSERT INTO items VALUES (39999)");
    follow_log("get");
    assert_true(follower.starts > 1 && follower.first_segments == 1);
    assert_int_equal(follower.commits, 1);
    assert_int_equal(follower.aborts, 3);
    expect_committed_rows();
}

static void streamed_transactions_may_mix_and_be_rolled_back(void **state)
{
    PGconn *other = open_session();
    (void)state;
    run("SET logical_decoding_work_mem = '64kB'; BEGIN");
    PQclear(query(other, "BEGIN"));
    for (unsigned i = 0; i < 4; i++) {
        insert_range(pq, i * 1000, 1000);
        insert_range(other, 10000 + i * 1000, 1000);
    }
    insert_in_subtransactions(20000);
    run("COMMIT");
    follow_log("peek");
    assert_int_equal(follower.first_segments, 2);
    assert_int_equal(follower.commits, 1);
    expect_committed_rows();
    PQclear(query(other, "ROLLBACK"));
    run("INSERT INTO items VALUES (39998)");
    follow_log("get");
    assert_int_equal(follower.commits, 1);
    assert_true(follower.aborts >= 4);
    expect_committed_rows();
    PQfinish(other);
}

/* What a block's changes were, by kind. */
static struct {
    uint32_t streaming;
    unsigned count[PGOUTPUT_STREAM_ABORT + 1];
} seen;

static void count_streamed(void *arg, const struct pgoutput_event *event)
{
    (void)arg;
    if (event->kind == PGOUTPUT_STREAM_START)
        seen.streaming = event->xid;
    else if (event->kind == PGOUTPUT_STREAM_STOP)
        seen.streaming = 0;
    else if (event->kind == PGOUTPUT_STREAM_COMMIT)
        seen.count[event->kind]++;
    else if (event->xid == seen.streaming)
        seen.count[event->kind] += seen.streaming != 0;
}

static void every_kind_of_change_is_streamed(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof seen);
    run("SET logical_decoding_work_mem = '64kB'; CREATE TYPE colour AS ENUM ('red');"
        "CREATE TABLE t (c colour PRIMARY KEY); BEGIN");
    insert_range(pq, 0, 2000);
    run("UPDATE items SET id = id + 10000, n = 1; DELETE FROM items WHERE id < 10100;"
        "SELECT pg_logical_emit_message(true, 'guard', 'hello');"
        "INSERT INTO t VALUES ('red'); ALTER TABLE items DROP n; TRUNCATE t");
    insert_range(pq, 0, 2000);
    run("COMMIT");
    read_changes("get", "p", "'proto_version', '2', 'streaming', 'on', 'messages', 'true'",
                 count_streamed, NULL);
    assert_int_equal(seen.count[PGOUTPUT_INSERT], 4001);
    assert_int_equal(seen.count[PGOUTPUT_UPDATE], 2000);
    assert_int_equal(seen.count[PGOUTPUT_DELETE], 100);
    assert_int_equal(seen.count[PGOUTPUT_TRUNCATE], 1);
    assert_int_equal(seen.count[PGOUTPUT_MESSAGE], 1);
    /* Told again after each change of the schema, and a TRUNCATE is one. */
    assert_in_range(seen.count[PGOUTPUT_RELATION], 3, 10);
    assert_in_range(seen.count[PGOUTPUT_TYPE], 1, 10);
    assert_int_equal(seen.count[PGOUTPUT_STREAM_COMMIT], 1);
}

#define LOG_TEST(name) cmocka_unit_test_setup_teardown(name, publish_everything, publish_no_more)

int main(void)
{
    const struct CMUnitTest tests[] = {
        LOG_TEST(a_large_transaction_is_streamed_and_commits_what_it_kept),
        LOG_TEST(streamed_transactions_may_mix_and_be_rolled_back),
        LOG_TEST(every_kind_of_change_is_streamed),
    };
    return cmocka_run_group_tests(tests, start_server, end_server);
}
