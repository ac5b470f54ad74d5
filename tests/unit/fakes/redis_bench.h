/* What tests of the connection to the cache share: a real server, one loop and connection for each
 * test, and commands beside that. */
#ifndef NESTGUARD_FAKES_REDIS_BENCH_H
#define NESTGUARD_FAKES_REDIS_BENCH_H

#include "fakes/servers.h"
#include "redis/redis.h"

#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern struct server server;

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

void on_state(void *arg, bool up, const char *error);
void on_closed(void *arg);

struct redis_options options_at(int port);

/* All but the connection. */
void bench_init(struct bench *bench);

void bench_open_with(struct bench *bench, const struct redis_options *options);

void bench_open(struct bench *bench);

/* The connection is being closed. */
void bench_end(struct bench *bench);

void bench_close(struct bench *bench);

#define RUN_UNTIL(bench, condition)                                                                \
    do {                                                                                           \
        while (!(condition))                                                                       \
            uv_run(&(bench)->loop, UV_RUN_ONCE);                                                   \
    } while (0)

void on_answer(void *arg, const struct redis_answer *answer);

struct redis_bytes bytes_of(const char *text);

void fill(struct bench *bench, const char *key, const char *value, uint64_t ttl,
          struct outcome *outcome);

struct outcome exists(struct bench *bench, const char *key);

void must_exist(struct bench *bench, const char *key, long long number);

void must_have_failed(const struct outcome *outcome, enum redis_outcome how, const char *text);

/* One command beside the connection under test; the caller frees the reply. */
redisReply *command(const char *format, ...);

void execute(const char *text);

void *stored_value(const char *key, size_t *length);

int start_server(void **state);

int end_server(void **state);

#endif
