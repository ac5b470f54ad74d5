#include "fakes/redis_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct server server;

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

void on_closed(void *arg)
{
    struct bench *bench = arg;
    assert_false(bench->closed);
    bench->closed = true;
    bench->redis = NULL;
    uv_close((uv_handle_t *)&bench->guard, NULL);
}

void on_state(void *arg, bool up, const char *error)
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

struct redis_options options_at(int port)
{
    return (struct redis_options){.host = "127.0.0.1", .port = (uint16_t)port, .timeout_ms = 2000};
}

void bench_init(struct bench *bench)
{
    memset(bench, 0, sizeof *bench);
    assert_int_equal(uv_loop_init(&bench->loop), 0);
    uv_timer_init(&bench->loop, &bench->guard);
    uv_timer_start(&bench->guard, on_guard, GUARD_TICK_MS, GUARD_TICK_MS);
    uv_unref((uv_handle_t *)&bench->guard);
}

void bench_open_with(struct bench *bench, const struct redis_options *options)
{
    bench_init(bench);
    assert_int_equal(redis_create(&bench->redis, &bench->loop, options, on_state, bench), 0);
}

void bench_open(struct bench *bench)
{
    struct redis_options options = options_at(server.port);
    bench_open_with(bench, &options);
}

void bench_end(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_true(bench->closed);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
}

void bench_close(struct bench *bench)
{
    if (bench->redis)
        redis_close(bench->redis, on_closed, bench);
    bench_end(bench);
}

void on_answer(void *arg, const struct redis_answer *answer)
{
    struct outcome *outcome = arg;
    outcome->calls++;
    outcome->outcome = answer->outcome;
    outcome->number = answer->number;
    outcome->found = answer->found;
    snprintf(outcome->error, sizeof outcome->error, "%s", answer->error);
}

struct redis_bytes bytes_of(const char *text)
{
    return (struct redis_bytes){text, strlen(text)};
}

void fill(struct bench *bench, const char *key, const char *value, uint64_t ttl,
          struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    redis_fill(bench->redis, bytes_of(key), bytes_of(value), ttl, on_answer, outcome);
    assert_int_equal(outcome->calls, 0);
}

struct outcome exists(struct bench *bench, const char *key)
{
    struct outcome outcome = {0};
    redis_exists(bench->redis, bytes_of(key), on_answer, &outcome);
    assert_int_equal(outcome.calls, 0);
    RUN_UNTIL(bench, outcome.calls);
    return outcome;
}

void must_exist(struct bench *bench, const char *key, long long number)
{
    struct outcome outcome = exists(bench, key);
    assert_int_equal(outcome.calls, 1);
    assert_int_equal(outcome.outcome, REDIS_DONE);
    assert_int_equal(outcome.number, number);
    assert_true(outcome.found);
    assert_string_equal(outcome.error, "");
}

void must_have_failed(const struct outcome *outcome, enum redis_outcome how, const char *text)
{
    assert_int_equal(outcome->calls, 1);
    assert_int_equal(outcome->outcome, how);
    assert_false(outcome->found);
    if (!strstr(outcome->error, text))
        fail_msg("\"%s\" does not say \"%s\"", outcome->error, text);
}

redisReply *command(const char *format, ...)
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

void execute(const char *text)
{
    redisReply *reply = command(text);
    if (reply->type == REDIS_REPLY_ERROR)
        fail_msg("%s: %s", text, reply->str);
    freeReplyObject(reply);
}

void *stored_value(const char *key, size_t *length)
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

int start_server(void **state)
{
    (void)state;
    redis_server_create(&server);
    return 0;
}

int end_server(void **state)
{
    (void)state;
    server_destroy(&server);
    return 0;
}
