#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fakes/servers.h"
#include "postgres/pg_pool.h"

enum statement {
    SAY,
    DIVIDE,
    SLEEP,
    BROKEN,
    ITEM,
    ADD_CHILD,
    PID,
    DIE,
    TIMEOUT,
    HELPERS,
    DISCARD,
    COUNT,
    FLOOD
};

static const struct pg_statement statements[] = {
    [SAY] = {.sql = "SELECT $1::text, $2::text IS NULL", .params = 2},
    [DIVIDE] = {.sql = "SELECT 100 / $1::int", .params = 1},
    [SLEEP] = {.sql = "SELECT pg_sleep($1::float8)", .params = 1},
    [BROKEN] = {.sql = "SELECT * FROM not_yet WHERE id = $1::int", .params = 1},
    [ITEM] = {.sql = "SELECT payload FROM item WHERE id = $1::int", .params = 1},
    [ADD_CHILD] = {.sql = "INSERT INTO child VALUES ($1::int)", .params = 1},
    [PID] = {.sql = "SELECT pg_backend_pid()"},
    [DIE] = {.sql = "SELECT pg_terminate_backend(pg_backend_pid())"},
    [TIMEOUT] = {.sql = "SHOW statement_timeout"},
    [HELPERS] = {.sql = "SHOW max_parallel_workers_per_gather"},
    [DISCARD] = {.sql = "DEALLOCATE ALL"},
    [COUNT] = {.sql = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'guard'"},
    [FLOOD] = {.sql = "SELECT pg_backend_pid(), repeat('x', $1::int)", .params = 1, .large = true},
};

static struct server server;

/* One test's loop and pool, and what they said. */
struct bench {
    uv_loop_t loop;
    uv_timer_t guard;
    struct pg_pool *pool;
    char conninfo[256];
    unsigned live, ups, downs;
    struct pg_error error; /* of the last on_state that had one */
    bool closed;
    bool close_when_down;
};

/* What one query brought. */
struct outcome {
    struct bench *bench;
    int calls;
    enum pg_outcome outcome;
    char value[128];
    struct pg_error error;
    bool early;
};

/* It ticks, because a turn of the loop may do in its timers what the test waits for, and would then
 * wait for the next event, which never comes. */
enum { GUARD_TICK_MS = 20, GUARD_TICKS = 60000 / GUARD_TICK_MS };

static void on_guard(uv_timer_t *timer)
{
    static int ticks;
    ticks = timer->data ? ticks + 1 : 0;
    timer->data = timer;
    if (ticks < GUARD_TICKS)
        return;
    fprintf(stderr, "nothing happened for too long\n");
    abort();
}

static void on_closed(void *arg)
{
    struct bench *bench = arg;
    assert_false(bench->closed);
    bench->closed = true;
    bench->pool = NULL;
    uv_close((uv_handle_t *)&bench->guard, NULL);
}

static void on_state(void *arg, unsigned live, const struct pg_error *error)
{
    struct bench *bench = arg;
    bench->live = live;
    bench->ups += error == NULL;
    bench->downs += error != NULL;
    if (error)
        bench->error = *error;
    if (error && bench->close_when_down)
        pg_pool_close(bench->pool, on_closed, bench);
}

static void bench_open_at(struct bench *bench, int port, const char *more, unsigned connections,
                          uint64_t timeout_ms)
{
    const char *error = NULL;
    memset(bench, 0, sizeof *bench);
    snprintf(bench->conninfo, sizeof bench->conninfo,
             "host=127.0.0.1 port=%d user=postgres dbname=postgres %s", port, more);
    const struct pg_pool_options options = {.conninfo = bench->conninfo,
                                            .application = "guard",
                                            .connections = connections,
                                            .timeout_ms = timeout_ms,
                                            .statements = statements,
                                            .statement_count =
                                                sizeof statements / sizeof *statements,
                                            .on_state = on_state,
                                            .arg = bench};
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    uv_timer_init(&bench->loop, &bench->guard);
    uv_timer_start(&bench->guard, on_guard, GUARD_TICK_MS, GUARD_TICK_MS);
    uv_unref((uv_handle_t *)&bench->guard);
    assert_int_equal(pg_pool_create(&bench->pool, &bench->loop, &options, &error), 0);
}

static void bench_open(struct bench *bench, unsigned connections)
{
    bench_open_at(bench, server.port, "", connections, 5000);
}

static void bench_close(struct bench *bench)
{
    if (bench->pool)
        pg_pool_close(bench->pool, on_closed, bench);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_true(bench->closed);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

#define RUN_UNTIL(bench, condition)                                                                \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(bench)->loop, UV_RUN_ONCE);                                                   \
    } while (0)

static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct outcome *outcome = arg;
    outcome->calls++;
    outcome->outcome = answer->outcome;
    outcome->error = answer->error;
    outcome->early = answer->early;
    if (answer->outcome != PG_DONE)
        assert_null(answer->result);
    else if (PQntuples(answer->result) > 0)
        snprintf(outcome->value, sizeof outcome->value, "%s", PQgetvalue(answer->result, 0, 0));
}

static void submit(struct bench *bench, enum statement statement, const char *value,
                   struct outcome *outcome)
{
    const char *const values[] = {value, NULL};
    memset(outcome, 0, sizeof *outcome);
    outcome->bench = bench;
    pg_pool_submit(bench->pool, statement, values, on_answer, outcome);
    assert_int_equal(outcome->calls, 0);
}

static struct outcome ask(struct bench *bench, enum statement statement, const char *value)
{
    struct outcome outcome;
    submit(bench, statement, value, &outcome);
    RUN_UNTIL(bench, outcome.calls > 0);
    assert_int_equal(outcome.calls, 1);
    return outcome;
}

static void must_be_done(const struct outcome *outcome, const char *value)
{
    assert_int_equal(outcome->calls, 1);
    assert_int_equal(outcome->outcome, PG_DONE);
    assert_string_equal(outcome->value, value);
    assert_string_equal(outcome->error.text, "");
}

static void must_have_failed(const struct outcome *outcome, enum pg_outcome how,
                             const char *sqlstate)
{
    assert_int_equal(outcome->calls, 1);
    assert_int_equal(outcome->outcome, how);
    assert_string_equal(outcome->error.sqlstate, sqlstate);
    assert_true(outcome->error.text[0] != '\0');
}

/* Runs SQL beside the pool. */
static void execute(const char *sql)
{
    char conninfo[128];
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres",
             server.port);
    PGconn *pq = PQconnectdb(conninfo);
    PGresult *result = PQexec(pq, sql);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s", PQerrorMessage(pq));
    PQclear(result);
    PQfinish(pq);
}

/* Ordinary work. */

static void queries_before_the_first_connection_wait_for_it(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    bench_open(&bench, 2);
    submit(&bench, SAY, "gr\xc3\xbc\xc3\x9f", &outcome);
    assert_int_equal(pg_pool_in_flight(bench.pool), 1);
    assert_int_equal(pg_pool_live(bench.pool), 0);
    RUN_UNTIL(&bench, outcome.calls > 0);
    must_be_done(&outcome, "gr\xc3\xbc\xc3\x9f");
    assert_int_equal(pg_pool_in_flight(bench.pool), 0);
    RUN_UNTIL(&bench, bench.ups == 2);
    assert_int_equal(bench.live, 2);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_refused_query_takes_no_other_with_it(void **state)
{
    struct bench bench;
    struct outcome outcomes[60];
    (void)state;
    bench_open(&bench, 1);
    for (int i = 0; i < 60; i++)
        submit(&bench, DIVIDE, i % 3 == 0 ? "0" : i % 3 == 1 ? "50" : "x", &outcomes[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 60; i++) {
        if (i % 3 == 1)
            must_be_done(&outcomes[i], "2");
        else
            must_have_failed(&outcomes[i], PG_REFUSED, i % 3 == 0 ? "22012" : "22P02");
    }
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_failed_prepare_fails_only_its_own_and_is_tried_again(void **state)
{
    struct bench bench;
    struct outcome broken[3], good[3];
    (void)state;
    execute("DROP TABLE IF EXISTS not_yet");
    bench_open(&bench, 1);
    for (int i = 0; i < 3; i++) {
        submit(&bench, BROKEN, "1", &broken[i]);
        submit(&bench, SAY, "fine", &good[i]);
    }
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 3; i++) {
        must_have_failed(&broken[i], PG_REFUSED, "42P01");
        must_be_done(&good[i], "fine");
    }
    execute("CREATE TABLE not_yet AS SELECT 1 AS id");
    struct outcome mended = ask(&bench, BROKEN, "1");
    must_be_done(&mended, "1");
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_changed_column_type_is_prepared_anew_unseen(void **state)
{
    struct bench bench;
    struct outcome outcomes[5];
    (void)state;
    execute("DROP TABLE IF EXISTS item; CREATE TABLE item (id int, payload int);"
            "INSERT INTO item VALUES (1, 7)");
    bench_open(&bench, 1);
    struct outcome before = ask(&bench, ITEM, "1");
    must_be_done(&before, "7");
    execute("ALTER TABLE item ALTER payload TYPE text USING 'now ' || payload");
    for (int i = 0; i < 5; i++)
        submit(&bench, ITEM, "1", &outcomes[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 5; i++)
        must_be_done(&outcomes[i], "now 7");
    bench_close(&bench);
}

static void statements_that_somebody_discarded_are_prepared_anew(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, 1);
    struct outcome outcome = ask(&bench, SAY, "before");
    must_be_done(&outcome, "before");
    outcome = ask(&bench, DISCARD, NULL);
    must_be_done(&outcome, "");
    outcome = ask(&bench, SAY, "after");
    must_be_done(&outcome, "after");
    bench_close(&bench);
}

static void an_error_at_commit_is_the_querys_error(void **state)
{
    struct bench bench;
    struct outcome bad, good, next;
    (void)state;
    execute("DROP TABLE IF EXISTS child, parent; CREATE TABLE parent (id int PRIMARY KEY);"
            "INSERT INTO parent VALUES (1);"
            "CREATE TABLE child (id int REFERENCES parent DEFERRABLE INITIALLY DEFERRED)");
    bench_open(&bench, 1);
    submit(&bench, ADD_CHILD, "2", &bad);
    submit(&bench, ADD_CHILD, "1", &good);
    submit(&bench, SAY, "next", &next);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    must_have_failed(&bad, PG_REFUSED, "23503");
    assert_non_null(strstr(bad.error.text, ": Key (id)=(2)"));
    must_be_done(&good, "");
    must_be_done(&next, "next");
    bench_close(&bench);
}

enum { MANY = 10000 };

static void ten_thousand_queries_in_flight_are_each_answered_once(void **state)
{
    struct bench bench;
    struct outcome *outcomes = calloc(MANY, sizeof *outcomes);
    char text[2100];
    (void)state;
    bench_open_at(&bench, server.port, "", 3, 60000);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    RUN_UNTIL(&bench, bench.ups == 3);
    /* 21 MB there and back: both sides' socket buffers fill up. */
    for (int i = 0; i < MANY; i++) {
        text[snprintf(text, 9, "%08d", i)] = 'x';
        submit(&bench, SAY, text, &outcomes[i]);
    }
    assert_int_equal(pg_pool_in_flight(bench.pool), MANY);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(outcomes[i].calls, 1);
        assert_int_equal(outcomes[i].outcome, PG_DONE);
        assert_int_equal(strtol(outcomes[i].value, NULL, 10), i);
    }
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
    free(outcomes);
}

static void load_is_spread_over_the_connections(void **state)
{
    struct bench bench;
    struct outcome slow, quick;
    (void)state;
    bench_open(&bench, 2);
    RUN_UNTIL(&bench, bench.ups == 2);
    submit(&bench, SLEEP, "1", &slow);
    submit(&bench, SAY, "quick", &quick);
    RUN_UNTIL(&bench, quick.calls);
    must_be_done(&quick, "quick");
    assert_int_equal(slow.calls, 0);
    RUN_UNTIL(&bench, slow.calls);
    bench_close(&bench);
}

static bool was_of(const struct outcome *outcome, const char *pid)
{
    return outcome->outcome == PG_DONE && strcmp(outcome->value, pid) == 0;
}

/* Of all but one: that is idle for as long as nobody asks for what is small. */
static void large_answers_keep_a_connection_free(void **state)
{
    struct bench bench;
    struct outcome large[9], small[6], kept;
    (void)state;
    bench_open(&bench, 3);
    RUN_UNTIL(&bench, bench.ups == 3);
    kept = ask(&bench, PID, NULL);
    for (int i = 0; i < 9; i++)
        submit(&bench, FLOOD, "3000000", &large[i]);
    for (int i = 0; i < 6; i++)
        submit(&bench, PID, NULL, &small[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 9; i++)
        assert_false(was_of(&large[i], kept.value));
    for (int i = 0; i < 6; i++)
        assert_true(was_of(&small[i], kept.value));
    bench_close(&bench);
}

/* Many small ones are no less slow than a large one. */
static void many_small_answers_do_not_queue_up_on_one_connection(void **state)
{
    struct bench bench;
    struct outcome large, small[100], kept;
    int elsewhere = 0;
    (void)state;
    bench_open(&bench, 2);
    RUN_UNTIL(&bench, bench.ups == 2);
    kept = ask(&bench, PID, NULL);
    submit(&bench, FLOOD, "10", &large);
    for (int i = 0; i < 100; i++)
        submit(&bench, PID, NULL, &small[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 100; i++)
        elsewhere += !was_of(&small[i], kept.value);
    assert_in_range(elsewhere, 20, 50);
    bench_close(&bench);
}

static void the_only_connection_takes_large_answers_too(void **state)
{
    struct bench bench;
    struct outcome large;
    (void)state;
    bench_open(&bench, 1);
    large = ask(&bench, FLOOD, "3000000");
    assert_int_equal(large.outcome, PG_DONE);
    bench_close(&bench);
}

static void wrong_options_are_refused_with_a_reason(void **state)
{
    struct pg_pool *pool = NULL;
    const char *error = NULL;
    struct pg_pool_options options = {.conninfo = "nonsense=1", .connections = 1, .timeout_ms = 1};
    (void)state;
    assert_int_equal(pg_pool_create(&pool, uv_default_loop(), &options, &error), -EINVAL);
    assert_non_null(strstr(error, "nonsense"));
    options.conninfo = "";
    options.connections = 0;
    assert_int_equal(pg_pool_create(&pool, uv_default_loop(), &options, &error), -EINVAL);
    assert_null(pool);
}

/* Time. */

static void the_servers_timeout_is_a_timeout(void **state)
{
    struct bench bench;
    struct outcome slow, next;
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 300);
    submit(&bench, SLEEP, "30", &slow);
    submit(&bench, SAY, "next", &next);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    must_have_failed(&slow, PG_TIMEOUT, "57014");
    must_be_done(&next, "next");
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_new_timeout_holds_for_open_connections_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_open_at(&bench, server.port, "options='-c statement_timeout=1h -c work_mem=1MB'", 1,
                  5000);
    struct outcome outcome = ask(&bench, TIMEOUT, NULL);
    must_be_done(&outcome, "5s");
    pg_pool_set_timeout(bench.pool, 200);
    outcome = ask(&bench, TIMEOUT, NULL);
    must_be_done(&outcome, "200ms");
    outcome = ask(&bench, SLEEP, "30");
    must_have_failed(&outcome, PG_TIMEOUT, "57014");
    bench_close(&bench);
}

static void a_query_has_no_process_but_its_own(void **state)
{
    struct bench bench;
    (void)state;
    bench_open_at(&bench, server.port, "options='-c max_parallel_workers_per_gather=4'", 1, 5000);
    struct outcome outcome = ask(&bench, HELPERS, NULL);
    must_be_done(&outcome, "0");
    bench_close(&bench);
}

/* Between the first setting and the server's word that it has it, too. */
static void a_connection_that_is_coming_up_has_the_newest_timeout(void **state)
{
    struct bench bench;
    char newest[24] = "";
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 5000);
    for (unsigned i = 1; i <= 50 && !bench.ups; i++) {
        pg_pool_set_timeout(bench.pool, 6000 + i);
        snprintf(newest, sizeof newest, "%ums", 6000 + i);
        uv_run(&bench.loop, UV_RUN_ONCE);
    }
    RUN_UNTIL(&bench, bench.ups);
    struct outcome outcome = ask(&bench, TIMEOUT, NULL);
    must_be_done(&outcome, newest);
    bench_close(&bench);
}

static void a_silent_backend_is_given_up_and_replaced(void **state)
{
    struct bench bench;
    struct outcome silent[3];
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 200);
    struct outcome pid = ask(&bench, PID, NULL);
    pid_t backend = (pid_t)strtol(pid.value, NULL, 10);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    for (int i = 0; i < 3; i++)
        submit(&bench, SAY, "anybody?", &silent[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 3; i++)
        must_have_failed(&silent[i], PG_TIMEOUT, "");
    assert_int_equal(bench.downs, 1);
    RUN_UNTIL(&bench, bench.ups == 2);
    struct outcome outcome = ask(&bench, SAY, "here");
    must_be_done(&outcome, "here");
    kill(backend, SIGCONT);
    bench_close(&bench);
}

/* By then it has hardly waited. */
static void a_query_behind_one_that_is_overdue_ends_early(void **state)
{
    struct bench bench;
    struct outcome overdue, behind, slow;
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 200);
    pid_t backend = (pid_t)strtol(ask(&bench, PID, NULL).value, NULL, 10);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    submit(&bench, SAY, "anybody?", &overdue);
    uint64_t asked = uv_now(&bench.loop);
    RUN_UNTIL(&bench, uv_now(&bench.loop) >= asked + 300);
    submit(&bench, SAY, "anybody else?", &behind);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    kill(backend, SIGCONT);
    must_have_failed(&overdue, PG_TIMEOUT, "");
    assert_false(overdue.early);
    must_have_failed(&behind, PG_TIMEOUT, "");
    assert_true(behind.early);
    RUN_UNTIL(&bench, bench.ups == 2);
    slow = ask(&bench, SLEEP, "30");
    must_have_failed(&slow, PG_TIMEOUT, "57014");
    assert_false(slow.early);
    bench_close(&bench);
}

/* It is given up since it hangs, and the server may answer over the next. */
static void
who_asks_again_waits_for_a_connection_that_takes_the_place_of_one_that_hung(void **state)
{
    struct bench bench;
    struct outcome overdue, again;
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 500);
    pid_t backend = (pid_t)strtol(ask(&bench, PID, NULL).value, NULL, 10);
    assert_int_equal(kill(backend, SIGSTOP), 0);
    submit(&bench, SAY, "anybody?", &overdue);
    RUN_UNTIL(&bench, overdue.calls);
    again = ask(&bench, SAY, "here");
    kill(backend, SIGCONT);
    must_have_failed(&overdue, PG_TIMEOUT, "");
    must_be_done(&again, "here");
    bench_close(&bench);
}

/* That it is lost is no matter of time. */
static void a_query_on_a_connection_that_is_lost_does_not_end_early(void **state)
{
    struct bench bench;
    struct outcome dead, behind;
    (void)state;
    bench_open(&bench, 1);
    submit(&bench, DIE, NULL, &dead);
    submit(&bench, SAY, "anybody?", &behind);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    assert_int_equal(behind.outcome, PG_DOWN);
    assert_false(behind.early);
    bench_close(&bench);
}

static void a_silent_server_keeps_nobody_waiting(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    kill(server.pid, SIGSTOP); /* the kernel still accepts for it */
    bench_open_at(&bench, server.port, "", 2, 200);
    uint64_t start = uv_hrtime();
    outcome = ask(&bench, SAY, "anybody?");
    must_have_failed(&outcome, PG_TIMEOUT, "");
    assert_in_range((uv_hrtime() - start) / 1000000, 150, 3000);
    kill(server.pid, SIGCONT);
    RUN_UNTIL(&bench, bench.ups == 2);
    outcome = ask(&bench, SAY, "here");
    must_be_done(&outcome, "here");
    bench_close(&bench);
}

static void a_pause_of_the_whole_process_is_no_timeout(void **state)
{
    struct bench bench;
    struct outcome before, after;
    (void)state;
    bench_open_at(&bench, server.port, "", 1, 100);
    RUN_UNTIL(&bench, bench.ups);
    submit(&bench, SAY, "before", &before);
    usleep(1500000);
    submit(&bench, SAY, "after", &after);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    must_be_done(&before, "before");
    must_be_done(&after, "after");
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

/* Loss. */

static void a_server_that_is_not_there_is_told_once_and_fails_fast(void **state)
{
    struct bench bench;
    struct outcome waiting, late;
    (void)state;
    bench_open_at(&bench, free_port(), "", 2, 5000);
    submit(&bench, SAY, "x", &waiting);
    RUN_UNTIL(&bench, bench.downs == 2 && waiting.calls);
    must_have_failed(&waiting, PG_DOWN, "");
    assert_non_null(strstr(waiting.error.text, "refused"));
    uint64_t start = uv_hrtime();
    while (uv_hrtime() - start < 500000000) { /* several attempts later */
        late = ask(&bench, SAY, "x");
        must_have_failed(&late, PG_DOWN, "");
    }
    assert_int_equal(bench.downs, 2);
    assert_int_equal(bench.ups, 0);
    assert_int_equal(bench.live, 0);
    bench_close(&bench);
}

static void a_wrong_password_is_told_with_the_servers_words(void **state)
{
    struct bench bench;
    (void)state;
    bench_open_at(&bench, server.port, "user=locked password=wrong", 1, 5000);
    struct outcome outcome = ask(&bench, SAY, "x");
    must_have_failed(&outcome, PG_DOWN, "28P01");
    assert_string_equal(bench.error.sqlstate, "28P01");
    assert_non_null(strstr(bench.error.text, "password authentication failed"));
    bench_close(&bench);
}

static void the_next_address_is_tried_when_the_first_refuses(void **state)
{
    struct bench bench;
    char more[96];
    (void)state;
    snprintf(more, sizeof more, "host=127.0.0.1,127.0.0.1,127.0.0.1 port=%d,%d,%d", free_port(),
             free_port(), server.port);
    bench_open_at(&bench, server.port, more, 2, 5000);
    struct outcome outcome = ask(&bench, SAY, "third");
    must_be_done(&outcome, "third");
    RUN_UNTIL(&bench, bench.ups == 2);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void the_host_behind_one_that_never_answers_is_tried(void **state)
{
    struct bench bench;
    char more[96];
    int port, listener = silent_listener(&port);
    (void)state;
    snprintf(more, sizeof more, "host=127.0.0.1,127.0.0.1 port=%d,%d", port, server.port);
    bench_open_at(&bench, server.port, more, 2, 100);
    RUN_UNTIL(&bench, bench.ups == 2);
    struct outcome outcome = ask(&bench, SAY, "second");
    must_be_done(&outcome, "second");
    bench_close(&bench);
    close(listener);
}

/* libpq lets a good connection go, looks for a standby elsewhere, and comes back: with a new socket
 * that has the old one's number. */
static void a_socket_that_libpq_replaces_is_followed(void **state)
{
    struct bench bench;
    (void)state;
    bench_open_at(&bench, server.port, "target_session_attrs=prefer-standby", 2, 5000);
    struct outcome outcome = ask(&bench, SAY, "primary");
    must_be_done(&outcome, "primary");
    RUN_UNTIL(&bench, bench.ups == 2);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void a_terminated_backend_fails_its_queries_and_comes_back(void **state)
{
    struct bench bench;
    struct outcome before, die, behind;
    (void)state;
    bench_open(&bench, 1);
    submit(&bench, SAY, "before", &before);
    submit(&bench, DIE, NULL, &die);
    submit(&bench, SAY, "behind", &behind);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    must_be_done(&before, "before");
    must_have_failed(&die, PG_DOWN, "57P01");
    must_have_failed(&behind, PG_DOWN, "57P01");
    assert_int_equal(bench.downs, 1);
    assert_string_equal(bench.error.sqlstate, "57P01");
    RUN_UNTIL(&bench, bench.ups == 2);
    struct outcome outcome = ask(&bench, SAY, "again");
    must_be_done(&outcome, "again");
    bench_close(&bench);
}

static void an_idle_connections_end_is_told_with_the_servers_reason(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, 1);
    RUN_UNTIL(&bench, bench.ups == 1);
    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'guard'");
    RUN_UNTIL(&bench, bench.downs == 1);
    assert_string_equal(bench.error.sqlstate, "57P01");
    assert_int_equal(bench.live, 0);
    bench_close(&bench);
}

/* What it was lost for says nothing of what keeps it away. */
static void why_it_does_not_come_back_is_told_too(void **state)
{
    struct bench bench;
    (void)state;
    bench_open_at(&bench, server.port, "user=locked password=secret", 1, 5000);
    RUN_UNTIL(&bench, bench.ups == 1);
    execute("ALTER ROLE locked PASSWORD 'another'");
    execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'locked'");
    RUN_UNTIL(&bench, bench.downs == 2);
    assert_string_equal(bench.error.sqlstate, "28P01");
    execute("ALTER ROLE locked PASSWORD 'secret'");
    RUN_UNTIL(&bench, bench.ups == 2);
    assert_int_equal(bench.downs, 2); /* however often it was tried */
    bench_close(&bench);
}

static void a_killed_server_is_used_again_when_it_is_back(void **state)
{
    struct bench bench;
    struct outcome lost[8], outcome;
    (void)state;
    bench_open(&bench, 3);
    RUN_UNTIL(&bench, bench.ups == 3);
    for (int i = 0; i < 8; i++)
        submit(&bench, SLEEP, "20", &lost[i]);
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    server_kill(&server, SIGKILL);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0 && bench.downs >= 3);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(lost[i].calls, 1);
        assert_int_equal(lost[i].outcome, PG_DOWN);
    }
    assert_int_equal(pg_pool_live(bench.pool), 0);
    outcome = ask(&bench, SAY, "x");
    assert_int_equal(outcome.outcome, PG_DOWN);
    postgres_start(&server);
    RUN_UNTIL(&bench, bench.ups == 6);
    outcome = ask(&bench, SAY, "back");
    must_be_done(&outcome, "back");
    bench_close(&bench);
}

/* Closing. */

static void renewed_connections_are_opened_anew_behind_their_last_answer(void **state)
{
    struct bench bench;
    struct outcome before, slow, during[20], after;
    (void)state;
    bench_open(&bench, 1);
    before = ask(&bench, PID, NULL);
    submit(&bench, SLEEP, "0.3", &slow);
    pg_pool_renew(bench.pool);
    assert_int_equal(pg_pool_live(bench.pool), 0);
    for (int i = 0; i < 20; i++)
        submit(&bench, PID, NULL, &during[i]);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    must_be_done(&slow, "");
    for (int i = 0; i < 20; i++)
        must_be_done(&during[i], during[0].value);
    assert_string_not_equal(during[0].value, before.value);
    pg_pool_renew(bench.pool); /* nothing is under way */
    after = ask(&bench, PID, NULL);
    must_be_done(&after, after.value);
    assert_string_not_equal(after.value, during[0].value);
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

/* Those that there are besides the one that asks. */
static void wait_for_connections(struct bench *bench, const char *wanted)
{
    struct outcome outcome;
    do
        outcome = ask(bench, COUNT, NULL);
    while (strcmp(outcome.value, wanted) != 0);
}

static void connections_that_are_too_many_leave_behind_their_last_answer(void **state)
{
    struct bench bench;
    struct outcome slow[4], quick;
    (void)state;
    bench_open(&bench, 4);
    RUN_UNTIL(&bench, bench.ups == 4);
    for (int i = 0; i < 4; i++)
        submit(&bench, SLEEP, "0.3", &slow[i]);
    pg_pool_set_connections(bench.pool, 1);
    assert_int_equal(pg_pool_live(bench.pool), 1);
    submit(&bench, SAY, "quick", &quick);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    for (int i = 0; i < 4; i++)
        must_be_done(&slow[i], "");
    must_be_done(&quick, "quick");
    wait_for_connections(&bench, "1");
    assert_null(pg_pool_error(bench.pool));
    assert_int_equal(bench.downs, 0);
    bench_close(&bench);
}

static void more_connections_are_opened_beside_those_that_there_are(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench, 1);
    struct outcome before = ask(&bench, PID, NULL);
    pg_pool_set_connections(bench.pool, 3);
    must_be_done(&before, ask(&bench, PID, NULL).value); /* nothing waits for the new ones */
    RUN_UNTIL(&bench, pg_pool_live(bench.pool) == 3);
    wait_for_connections(&bench, "3");
    pg_pool_set_connections(bench.pool, 2);
    pg_pool_set_connections(bench.pool, 3); /* wanted again in time */
    assert_int_equal(pg_pool_live(bench.pool), 3);
    wait_for_connections(&bench, "3");
    pg_pool_set_connections(bench.pool, 2);
    bench_close(&bench); /* while one leaves */
}

static void on_stranger(void *arg, const struct pg_server *stranger)
{
    *(struct pg_server *)arg = *stranger;
}

static void a_server_that_will_not_do_answers_nothing(void **state)
{
    struct bench bench;
    struct outcome slow, refused, after;
    struct pg_server stranger = {.history = ""};
    struct pg_pool_rule rule = {.server = {.server = {.history = "another/00000001"}},
                                .on_stranger = on_stranger,
                                .arg = &stranger};
    (void)state;
    bench_open(&bench, 2);
    RUN_UNTIL(&bench, bench.ups == 2);
    assert_null(pg_pool_error(bench.pool));
    submit(&bench, SLEEP, "30", &slow);
    pg_pool_keep_to(bench.pool, &rule);
    assert_int_equal(slow.calls, 0);
    assert_int_equal(pg_pool_live(bench.pool), 0);
    RUN_UNTIL(&bench, slow.calls);
    must_have_failed(&slow, PG_DOWN, "");
    RUN_UNTIL(&bench, pg_server_is_known(&stranger));
    assert_false(stranger.standby);
    assert_non_null(strstr(pg_pool_error(bench.pool)->text, "another server"));
    refused = ask(&bench, SAY, "x");
    must_have_failed(&refused, PG_DOWN, "");
    rule.server.server = stranger;
    rule.server.primary = rule.server.unrestarted = true;
    pg_pool_keep_to(bench.pool, &rule);
    RUN_UNTIL(&bench, pg_pool_live(bench.pool) == 2);
    pg_pool_keep_to(bench.pool, &rule); /* nothing has changed */
    assert_int_equal(pg_pool_live(bench.pool), 2);
    after = ask(&bench, SAY, "x");
    must_be_done(&after, "x");
    bench_close(&bench);
}

/* ---- another conninfo ---- */

static void move_to(struct bench *bench, int port, const char *more)
{
    char conninfo[160];
    snprintf(conninfo, sizeof conninfo, "host=127.0.0.1 port=%d user=postgres dbname=postgres %s",
             port, more);
    pg_pool_move(bench->pool, conninfo);
}

static void those_before_serve_until_a_new_one_is_up(void **state)
{
    struct bench bench;
    struct outcome slow, pid, after;
    (void)state;
    bench_open(&bench, 2);
    RUN_UNTIL(&bench, bench.ups == 2);
    pid = ask(&bench, PID, NULL);
    move_to(&bench, 1, "");
    after = ask(&bench, SAY, "x");
    must_be_done(&after, "x");
    RUN_UNTIL(&bench, bench.downs == 2); /* nobody listens there */
    after = ask(&bench, SAY, "y");
    must_be_done(&after, "y");
    submit(&bench, SLEEP, "0.3", &slow);
    submit(&bench, SLEEP, "0.3", &slow);
    move_to(&bench, server.port, "");
    RUN_UNTIL(&bench, bench.ups >= 4);
    after = ask(&bench, PID, NULL);
    assert_string_not_equal(after.value, pid.value);
    RUN_UNTIL(&bench, pg_pool_in_flight(bench.pool) == 0);
    assert_int_equal(slow.outcome, PG_DONE);
    assert_int_equal(pg_pool_live(bench.pool), 2);
    bench_close(&bench);
}

static void closing_ends_every_query_once(void **state)
{
    struct bench bench;
    struct outcome *outcomes = calloc(MANY, sizeof *outcomes);
    (void)state;
    bench_open(&bench, 2);
    submit(&bench, SAY, "waits", &outcomes[0]);
    RUN_UNTIL(&bench, bench.ups == 2);
    for (int i = 1; i < MANY; i++)
        submit(&bench, i % 100 ? SAY : SLEEP, "1", &outcomes[i]);
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    bench_close(&bench);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(outcomes[i].calls, 1);
    must_have_failed(&outcomes[MANY - 1], PG_DOWN, "");
    free(outcomes);
}

static void a_pool_can_be_closed_before_it_ever_ran(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    bench_open(&bench, 4);
    submit(&bench, SAY, "x", &outcome);
    bench_close(&bench);
    must_have_failed(&outcome, PG_DOWN, "");
    bench_open(&bench, 4);
    uv_run(&bench.loop, UV_RUN_NOWAIT); /* in the middle of connecting */
    uv_run(&bench.loop, UV_RUN_NOWAIT);
    bench_close(&bench);
}

static void close_on_answer(void *arg, const struct pg_answer *answer)
{
    struct outcome *outcome = arg;
    on_answer(arg, answer);
    if (outcome->bench->pool && !outcome->bench->closed && outcome->calls == 1)
        pg_pool_close(outcome->bench->pool, on_closed, outcome->bench);
}

static void a_callback_may_close_the_pool(void **state)
{
    struct bench bench;
    struct outcome closer = {.bench = &bench}, others[20];
    const char *const values[] = {"x", NULL};
    (void)state;
    bench_open(&bench, 1);
    for (int i = 0; i < 10; i++)
        submit(&bench, SAY, "x", &others[i]);
    pg_pool_submit(bench.pool, SAY, values, close_on_answer, &closer);
    for (int i = 10; i < 20; i++)
        submit(&bench, SLEEP, "20", &others[i]);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    bench.pool = NULL;
    bench_close(&bench);
    assert_int_equal(closer.calls, 1);
    for (int i = 0; i < 20; i++)
        assert_int_equal(others[i].calls, 1);
    assert_int_equal(others[19].outcome, PG_DOWN);
}

static void the_state_callback_may_close_the_pool(void **state)
{
    struct bench bench;
    struct outcome outcome;
    (void)state;
    bench_open_at(&bench, free_port(), "", 3, 5000);
    bench.close_when_down = true;
    submit(&bench, SAY, "x", &outcome);
    uv_run(&bench.loop, UV_RUN_DEFAULT);
    bench_close(&bench);
    must_have_failed(&outcome, PG_DOWN, "");
}

static int submit_until;

static void submit_again(void *arg, const struct pg_answer *answer)
{
    struct outcome *outcome = arg;
    const char *const values[] = {"again", NULL};
    on_answer(arg, answer);
    if (outcome->calls < submit_until)
        pg_pool_submit(outcome->bench->pool, SAY, values, submit_again, outcome);
}

static void a_callback_may_submit_again(void **state)
{
    struct bench bench;
    struct outcome outcome = {.bench = &bench};
    const char *const values[] = {"first", NULL};
    (void)state;
    submit_until = INT_MAX;
    bench_open(&bench, 1);
    pg_pool_submit(bench.pool, SAY, values, submit_again, &outcome);
    RUN_UNTIL(&bench, outcome.calls == 100);
    assert_int_equal(outcome.outcome, PG_DONE);
    server_kill(&server, SIGKILL);
    RUN_UNTIL(&bench, outcome.outcome == PG_DOWN);
    submit_until = outcome.calls + 100; /* while it is down, and in closing */
    RUN_UNTIL(&bench, outcome.calls == submit_until - 50);
    bench_close(&bench);
    assert_int_equal(outcome.outcome, PG_DOWN);
    assert_int_equal(outcome.calls, submit_until);
    postgres_start(&server);
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
        cmocka_unit_test(queries_before_the_first_connection_wait_for_it),
        cmocka_unit_test(a_refused_query_takes_no_other_with_it),
        cmocka_unit_test(a_failed_prepare_fails_only_its_own_and_is_tried_again),
        cmocka_unit_test(a_changed_column_type_is_prepared_anew_unseen),
        cmocka_unit_test(statements_that_somebody_discarded_are_prepared_anew),
        cmocka_unit_test(an_error_at_commit_is_the_querys_error),
        cmocka_unit_test(ten_thousand_queries_in_flight_are_each_answered_once),
        cmocka_unit_test(load_is_spread_over_the_connections),
        cmocka_unit_test(large_answers_keep_a_connection_free),
        cmocka_unit_test(many_small_answers_do_not_queue_up_on_one_connection),
        cmocka_unit_test(the_only_connection_takes_large_answers_too),
        cmocka_unit_test(wrong_options_are_refused_with_a_reason),
        cmocka_unit_test(the_servers_timeout_is_a_timeout),
        cmocka_unit_test(a_new_timeout_holds_for_open_connections_too),
        cmocka_unit_test(a_query_has_no_process_but_its_own),
        cmocka_unit_test(a_connection_that_is_coming_up_has_the_newest_timeout),
        cmocka_unit_test(a_silent_backend_is_given_up_and_replaced),
        cmocka_unit_test(a_query_behind_one_that_is_overdue_ends_early),
        cmocka_unit_test(
            who_asks_again_waits_for_a_connection_that_takes_the_place_of_one_that_hung),
        cmocka_unit_test(a_query_on_a_connection_that_is_lost_does_not_end_early),
        cmocka_unit_test(a_silent_server_keeps_nobody_waiting),
        cmocka_unit_test(a_pause_of_the_whole_process_is_no_timeout),
        cmocka_unit_test(a_server_that_is_not_there_is_told_once_and_fails_fast),
        cmocka_unit_test(a_wrong_password_is_told_with_the_servers_words),
        cmocka_unit_test(the_next_address_is_tried_when_the_first_refuses),
        cmocka_unit_test(the_host_behind_one_that_never_answers_is_tried),
        cmocka_unit_test(a_socket_that_libpq_replaces_is_followed),
        cmocka_unit_test(a_terminated_backend_fails_its_queries_and_comes_back),
        cmocka_unit_test(an_idle_connections_end_is_told_with_the_servers_reason),
        cmocka_unit_test(why_it_does_not_come_back_is_told_too),
        cmocka_unit_test(a_killed_server_is_used_again_when_it_is_back),
        cmocka_unit_test(renewed_connections_are_opened_anew_behind_their_last_answer),
        cmocka_unit_test(connections_that_are_too_many_leave_behind_their_last_answer),
        cmocka_unit_test(more_connections_are_opened_beside_those_that_there_are),
        cmocka_unit_test(a_server_that_will_not_do_answers_nothing),
        cmocka_unit_test(those_before_serve_until_a_new_one_is_up),
        cmocka_unit_test(closing_ends_every_query_once),
        cmocka_unit_test(a_pool_can_be_closed_before_it_ever_ran),
        cmocka_unit_test(a_callback_may_close_the_pool),
        cmocka_unit_test(the_state_callback_may_close_the_pool),
        cmocka_unit_test(a_callback_may_submit_again),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
