/* What tests of the connection to the cache share: a real server, one loop and connection for each
 * test, and commands beside that. */
#ifndef NESTGUARD_TEST_REDIS_BENCH_H
#define NESTGUARD_TEST_REDIS_BENCH_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "redis/redis.h"
#include "servers.h"

static struct server server;

/* One test's loop and connection, and what they said. */
struct bench {
    uv_loop_t loop;
    uv_timer_t guard;
    struct redis *redis;
    unsigned ups, downs;
    char error[256]; /* of the last change that had one */
    bool closed;
    bool close_when_down;
};

struct outcome {
    struct bench *bench;
    int calls;
    enum redis_outcome outcome;
    long long number;
    bool found;
    char error[256];
};

/* It ticks, because a turn of the loop may do in its timers what the test waits for, and would then
 * wait for the next event, which never comes. */
enum { GUARD_TICK_MS = 20, GUARD_TICKS = 60000 / GUARD_TICK_MS };

static inline void on_guard(uv_timer_t *timer)
{
    static int ticks;
    ticks = timer->data ? ticks + 1 : 0;
    timer->data = timer;
    if (ticks < GUARD_TICKS)
        return;
    fprintf(stderr, "nothing happened for too long\n");
    abort();
}

static inline void on_closed(void *arg)
{
    struct bench *bench = arg;
    assert_false(bench->closed);
    bench->closed = true;
    bench->redis = NULL;
    uv_close((uv_handle_t *)&bench->guard, NULL);
}

static inline void on_state(void *arg, bool up, const char *error)
{
    struct bench *bench = arg;
    bench->ups += up;
    bench->downs += !up;
    assert_true(up == (error == NULL));
    assert_true(redis_is_up(bench->redis) == up);
    if (error)
        snprintf(bench->error, sizeof bench->error, "%s", error);
    if (!up && bench->close_when_down)
        redis_close(bench->redis, on_closed, bench);
}

static inline struct redis_options options_at(int port)
{
    return (struct redis_options){.host = "127.0.0.1", .port = (uint16_t)port, .timeout_ms = 2000};
}

/* All but the connection. */
static inline void bench_init(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    uv_timer_init(&bench->loop, &bench->guard);
    uv_timer_start(&bench->guard, on_guard, GUARD_TICK_MS, GUARD_TICK_MS);
    uv_unref((uv_handle_t *)&bench->guard);
}

static inline void bench_open_with(struct bench *bench, const struct redis_options *options)
{
    bench_init(bench);
    assert_int_equal(redis_create(&bench->redis, &bench->loop, options, on_state, bench), 0);
}

static inline void bench_open(struct bench *bench)
{
    struct redis_options options = options_at(server.port);
    bench_open_with(bench, &options);
}

/* The connection is being closed. */
static inline void bench_end(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_true(bench->closed);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

static inline void bench_close(struct bench *bench)
{
    if (bench->redis)
        redis_close(bench->redis, on_closed, bench);
    bench_end(bench);
}

#define RUN_UNTIL(bench, condition)                                                                \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(bench)->loop, UV_RUN_ONCE);                                                   \
    } while (0)

static inline void on_answer(void *arg, const struct redis_answer *answer)
{
    struct outcome *outcome = arg;
    outcome->calls++;
    outcome->outcome = answer->outcome;
    outcome->number = answer->number;
    outcome->found = answer->found;
    snprintf(outcome->error, sizeof outcome->error, "%s", answer->error);
}

static inline struct redis_bytes bytes_of(const char *text)
{
    return (struct redis_bytes){text, strlen(text)};
}

static inline void fill(struct bench *bench, const char *key, const char *value, uint64_t ttl,
                        struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    redis_fill(bench->redis, bytes_of(key), bytes_of(value), ttl, on_answer, outcome);
    assert_int_equal(outcome->calls, 0);
}

static inline struct outcome exists(struct bench *bench, const char *key)
{
    struct outcome outcome = {0};
    redis_exists(bench->redis, bytes_of(key), on_answer, &outcome);
    assert_int_equal(outcome.calls, 0);
    RUN_UNTIL(bench, outcome.calls);
    return outcome;
}

static inline void must_exist(struct bench *bench, const char *key, long long number)
{
    struct outcome outcome = exists(bench, key);
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.outcome, REDIS_DONE);
    assert_int_equal(outcome.number, number);
    assert_true(outcome.found);
    assert_string_equal(outcome.error, "");
}

static inline void must_have_failed(const struct outcome *outcome, enum redis_outcome how,
                                    const char *text)
{
    assert_int_equal(outcome->calls, 1);
    assert_int_equal(outcome->outcome, how);
    assert_false(outcome->found);
    if (!strstr(outcome->error, text))
        fail_msg("\"%s\" does not say \"%s\"", outcome->error, text);
}

/* One command beside the connection under test; the caller frees the reply. */
static inline redisReply *command(const char *format, ...)
{
    va_list arguments;
    redisContext *context = redisConnect("127.0.0.1", server.port);
    assert_int_equal(context->err, 0);
    va_start(arguments, format);
    redisReply *reply = redisvCommand(context, format, arguments);
    va_end(arguments);
    assert_non_null(reply);
    redisFree(context);
    return reply;
}

static inline void execute(const char *text)
{
    redisReply *reply = command(text);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", text, reply->str);
    freeReplyObject(reply);
}

static inline void *stored_value(const char *key, size_t *length)
{
    redisReply *reply = command("GET %s", key);
    char *copy = NULL;
    assert_int_equal(reply->type, REDIS_REPLY_STRING);
    *length = reply->len;
    copy = calloc(1, reply->len + 1);
    memcpy(copy, reply->str, reply->len);
    freeReplyObject(reply);
    return copy;
}

static inline int start_server(void **state)
{
    (void)state;
    redis_server_create(&server);
    return 0;
}

static inline int end_server(void **state)
{
    (void)state;
    server_destroy(&server);
    return 0;
}

#endif
