/* What a lost connection has left behind must not run after what goes over the next one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fakes/redis_bench.h"

static bool leads_to_server(int fd)
{
    struct sockaddr_in peer = {0};
    socklen_t length = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET &&
           ntohs(peer.sin_port) == server.port;
}

/* A second descriptor of the connection under test. While it is open the server does not learn
 * that the first was closed, and may still read what comes over it: as if that had been on its way
 * through the network. */
static int keep_alive(void)
{
    for (int fd = 3; fd < 256; fd++)
        if (leads_to_server(fd))
            return dup(fd);
    fail_msg("no connection to the server");
    return -1;
}

/* The late command arrives, and the server has answered it, or closed the connection. */
static void arrive_late(int fd, const char *text)
{
    char answer[1000];
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    while (recv(fd, answer, sizeof answer, MSG_DONTWAIT) > 0) { /* answers to what came before */
    }
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return;
    assert_int_equal(poll(&wait, 1, 10000), 1);
}

static void purge(struct bench *bench, const char *key)
{
    struct outcome outcome = {0};
    redis_purge(bench->redis, bytes_of(key), on_answer, &outcome);
    RUN_UNTIL(bench, outcome.calls);
    assert_int_equal(outcome.outcome, REDIS_DONE);
}

/* Up, then down because the server is silent for longer than the timeout; it goes on afterwards. */
static void lose_by_silence(struct bench *bench)
{
    struct outcome outcome;
    unsigned downs = bench->downs;
    kill(server.pid, SIGSTOP);
    fill(bench, "key", "stale", 0, &outcome);
    RUN_UNTIL(bench, outcome.calls);
    must_have_failed(&outcome, REDIS_DOWN, "no answer");
    assert_int_equal(bench->downs, downs + 1);
    kill(server.pid, SIGCONT);
}

/* Loses the connection, not by any fault of the server's, and waits for the next. */
static void lose_and_return(struct bench *bench)
{
    unsigned ups = bench->ups;
    execute("CLIENT KILL TYPE normal SKIPME yes");
    RUN_UNTIL(bench, bench->ups == ups + 1);
}

static void must_be_doubted(const struct bench *bench, const char *why)
{
    const char *doubt = redis_doubt(bench->redis);
    if (!doubt || !strstr(doubt, why))
        fail_msg("\"%s\" does not say \"%s\"", doubt ? doubt : "", why);
}

static void open_impatient(struct bench *bench, const struct redis_options *wanted)
{
    struct redis_options options = *wanted;
    options.timeout_ms = 200;
    bench_open_with(bench, &options);
    RUN_UNTIL(bench, bench->ups);
}

static void a_fill_of_a_paused_server_runs_before_the_purge_or_not_at_all(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    open_impatient(&bench, &options);
    for (unsigned round = 1; round <= 5; round++) {
        execute("FLUSHALL");
        lose_by_silence(&bench);
        RUN_UNTIL(&bench, bench.ups == round + 1);
        purge(&bench, "key");
        must_exist(&bench, "key", 0);
        execute("PING"); /* the server has been through its other clients */
        must_exist(&bench, "key", 0);
    }
    bench_close(&bench);
}

static void a_fill_that_arrives_after_the_next_connection_is_not_run(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    execute("FLUSHALL");
    open_impatient(&bench, &options);
    int late = keep_alive();
    lose_by_silence(&bench);
    RUN_UNTIL(&bench, bench.ups == 2);
    purge(&bench, "key");
    arrive_late(late, "SET key stale\r\n");
    must_exist(&bench, "key", 0);
    bench_close(&bench);
    close(late);
}

/* The connection between was lost before the server had heard of it. */
static void an_attempt_that_fails_forgets_nothing(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    struct outcome outcome;
    (void)state;
    execute("FLUSHALL");
    open_impatient(&bench, &options);
    int late = keep_alive();
    kill(server.pid, SIGSTOP);
    fill(&bench, "key", "stale", 0, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    uint64_t start = uv_hrtime();
    RUN_UNTIL(&bench, uv_hrtime() - start > 1000000000);
    kill(server.pid, SIGCONT);
    RUN_UNTIL(&bench, bench.ups == 2);
    purge(&bench, "key");
    arrive_late(late, "SET key stale\r\n");
    must_exist(&bench, "key", 0);
    bench_close(&bench);
    close(late);
}

/* Numbers start anew with the server: somebody else may have the old connection's. */
static void nobody_else_is_killed_after_a_restart(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    enum { OTHERS = 20 };
    redisContext *others[OTHERS];
    (void)state;
    server_kill(&server, SIGKILL);
    redis_server_start(&server);
    open_impatient(&bench, &options); /* with a low number */
    server_kill(&server, SIGKILL);
    RUN_UNTIL(&bench, bench.downs);
    redis_server_start(&server);
    for (int i = 0; i < OTHERS; i++) {
        others[i] = redisConnect("127.0.0.1", server.port);
        assert_int_equal(others[i]->err, 0);
    }
    RUN_UNTIL(&bench, bench.ups == 2);
    for (int i = 0; i < OTHERS; i++) {
        redisReply *reply = redisCommand(others[i], "PING");
        assert_non_null(reply);
        freeReplyObject(reply);
        redisFree(others[i]);
    }
    bench_close(&bench);
}

/* An old server, or one that keeps these commands from this user. */
static void a_server_that_says_no_to_all_of_it_is_used_without(void **state)
{
    static const char *const rights[] = {"+set +del +exists", "+set +del +exists +client|id +info",
                                         "+set +del +exists +client"};
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.user = "guard";
    options.password = "pass";
    for (int i = 0; i < 3; i++) {
        execute("FLUSHALL");
        freeReplyObject(command("ACL DELUSER guard"));
        char text[100];
        snprintf(text, sizeof text, "ACL SETUSER guard on >pass ~* %s", rights[i]);
        execute(text);
        open_impatient(&bench, &options);
        lose_by_silence(&bench);
        RUN_UNTIL(&bench, bench.ups == 2);
        purge(&bench, "key");
        must_exist(&bench, "key", 0);
        bench_close(&bench);
    }
    execute("ACL DELUSER guard");
}

/* What it left behind may then come at any time. */
static void a_refusal_to_forget_what_was_left_is_a_reason_for_doubt(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.user = "guard";
    options.password = "pass";
    execute("ACL SETUSER guard on >pass ~* +set +del +exists +client|id +info");
    open_impatient(&bench, &options);
    lose_and_return(&bench); /* with nothing under way */
    assert_null(redis_doubt(bench.redis));
    lose_by_silence(&bench);
    RUN_UNTIL(&bench, bench.ups == 3);
    must_be_doubted(&bench, "may still be run");
    lose_and_return(&bench);
    assert_null(redis_doubt(bench.redis));
    bench_close(&bench);
    execute("ACL DELUSER guard");
}

/* A script keeps the server from everything else. */
static void a_server_that_is_too_busy_to_forget_is_not_up(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    struct outcome outcome;
    void *reply;
    (void)state;
    execute("FLUSHALL");
    execute("CONFIG SET lua-time-limit 1");
    open_impatient(&bench, &options);
    int late = keep_alive();
    redisContext *other = redisConnect("127.0.0.1", server.port);
    kill(server.pid, SIGSTOP);
    redisAppendCommand(other, "EVAL %s 0",
                       "local s = redis.call('TIME')[1] "
                       "while redis.call('TIME')[1] - s < 3 do end");
    int written = 0;
    while (!written)
        assert_int_equal(redisBufferWrite(other, &written), REDIS_OK);
    fill(&bench, "key", "stale", 0, &outcome);
    RUN_UNTIL(&bench, outcome.calls);
    must_have_failed(&outcome, REDIS_DOWN, "no answer");
    kill(server.pid, SIGCONT);
    RUN_UNTIL(&bench, bench.ups == 2);
    purge(&bench, "key");
    assert_null(redis_doubt(bench.redis));
    arrive_late(late, "SET key stale\r\n");
    must_exist(&bench, "key", 0);
    assert_int_equal(redisGetReply(other, &reply), REDIS_OK);
    freeReplyObject(reply);
    redisFree(other);
    bench_close(&bench);
    close(late);
}

/* ---- what may be forgotten ---- */

static void the_same_server_is_not_doubted(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    assert_null(redis_doubt(bench.redis));
    for (int i = 0; i < 3; i++) {
        lose_and_return(&bench);
        assert_null(redis_doubt(bench.redis));
    }
    bench_close(&bench);
}

static void a_server_that_was_started_anew_is_doubted_once(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    server_kill(&server, SIGKILL);
    RUN_UNTIL(&bench, bench.downs);
    redis_server_start(&server);
    RUN_UNTIL(&bench, bench.ups == 2);
    must_be_doubted(&bench, "started anew");
    lose_and_return(&bench);
    assert_null(redis_doubt(bench.redis));
    bench_close(&bench);
}

static void a_server_that_was_a_replica_is_doubted(void **state)
{
    struct bench bench;
    (void)state;
    bench_open(&bench);
    RUN_UNTIL(&bench, bench.ups);
    execute("REPLICAOF 127.0.0.1 1"); /* of nobody, but it does not know */
    execute("REPLICAOF NO ONE");
    lose_and_return(&bench);
    must_be_doubted(&bench, "another history");
    bench_close(&bench);
}

static void a_server_that_does_not_say_who_it_is_is_doubted_always(void **state)
{
    struct bench bench;
    struct redis_options options = options_at(server.port);
    (void)state;
    options.user = "guard";
    options.password = "pass";
    execute("ACL SETUSER guard on >pass ~* +ping");
    open_impatient(&bench, &options);
    assert_null(redis_doubt(bench.redis)); /* the first */
    for (int i = 0; i < 2; i++) {
        lose_and_return(&bench);
        must_be_doubted(&bench, "run_id");
    }
    execute("ACL SETUSER guard +info");
    lose_and_return(&bench);
    must_be_doubted(&bench, "run_id"); /* of the one before nobody knows */
    lose_and_return(&bench);
    assert_null(redis_doubt(bench.redis));
    bench_close(&bench);
    execute("ACL DELUSER guard");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fill_of_a_paused_server_runs_before_the_purge_or_not_at_all),
        cmocka_unit_test(a_fill_that_arrives_after_the_next_connection_is_not_run),
        cmocka_unit_test(an_attempt_that_fails_forgets_nothing),
        cmocka_unit_test(nobody_else_is_killed_after_a_restart),
        cmocka_unit_test(a_server_that_says_no_to_all_of_it_is_used_without),
        cmocka_unit_test(a_refusal_to_forget_what_was_left_is_a_reason_for_doubt),
        cmocka_unit_test(a_server_that_is_too_busy_to_forget_is_not_up),
        cmocka_unit_test(the_same_server_is_not_doubted),
        cmocka_unit_test(a_server_that_was_started_anew_is_doubted_once),
        cmocka_unit_test(a_server_that_was_a_replica_is_doubted),
        cmocka_unit_test(a_server_that_does_not_say_who_it_is_is_doubted_always),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, start_server, end_server);
}
