/* A whole keeper with a worker, between a client and a cache that the test plays itself, and a
 * builder that is done when the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/memory.h"
#include "build/builder.h"
#include "fakes/config_file.h"
#include "fakes/log.h"
#include "fakes/peer.h"
#include "keeper/keeper_internal.h"
#include "keeper/keeper_run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- a builder whose snapshots are always empty ---- */

struct builder {
    uv_async_t wake;
    size_t keyspaces;
    uint64_t number;
    bool stopped;
    builder_done done;
    void *arg;
};

static _Atomic(struct builder *) building;

static void on_freed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_built(uv_async_t *wake)
{
    struct filter_options options = {.capacity = 10, .false_positive_rate = 1e-7};
    struct builder *builder = wake->data;
    struct generation *generation = NULL;
    const char *error;
    if (!builder->stopped) {
        generation = generation_create(builder->number, builder->keyspaces);
        for (size_t i = 0; i < builder->keyspaces; i++)
            if (filter_create(&generation->filters[i], &options, &error))
                abort();
    }
    uv_close((uv_handle_t *)wake, on_freed);
    struct built built = {.generation = generation, .values = (char[]){"a,b"}};
    struct pg_error stopped = {.text = "stopped"};
    builder->done(builder->arg, &built, generation ? NULL : &stopped);
    generation_release(built.generation);
}

struct builder *builder_start(uv_loop_t *loop, const struct builder_options *options)
{
    struct builder *builder = xcalloc(1, sizeof *builder);
    builder->keyspaces = options->config->keyspace_count;
    free(options->replaced);
    free(options->guarded);
    builder->number = options->number;
    builder->done = options->done;
    builder->arg = options->arg;
    builder->wake.data = builder;
    uv_async_init(loop, &builder->wake, on_built);
    atomic_store(&building, builder);
    return builder;
}

void builder_stop(struct builder *builder)
{
    builder->stopped = true;
    uv_async_send(&builder->wake);
}

void builder_hurry(struct builder *builder, bool hurried)
{
    (void)builder;
    (void)hurried;
}

const char *build_phase_text(enum build_phase phase)
{
    return phase == BUILD_COPYING ? "copying" : "building";
}

struct build_progress builder_progress(struct builder *builder)
{
    (void)builder;
    return (struct build_progress){0};
}

static void wait_for_build(uint64_t number)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (!atomic_load(&building) || atomic_load(&building)->number != number) {
        assert_true(clock_ms() < until);
        uv_sleep(1);
    }
}

static void end_build(uint64_t number)
{
    wait_for_build(number);
    uv_async_send(&atomic_exchange(&building, NULL)->wake);
}

/* ---- a self-check that passes whatever the database, which is not there, says ---- */

struct selfcheck {
    struct selfcheck_options options;
    bool cancelled;
};

static void on_answer(void *arg, const struct pg_answer *answer)
{
    struct selfcheck *check = arg;
    (void)answer;
    struct selfcheck_account account = {.outcome = SELFCHECK_PASSED};
    struct selfcheck_result result = {
        .outcome = SELFCHECK_PASSED, .why = "", .keyspaces = &account};
    if (!check->cancelled)
        check->options.done(check->options.arg, &result);
    free(check);
}

struct selfcheck *selfcheck_begin(const struct selfcheck_options *options)
{
    struct selfcheck *check = xcalloc(1, sizeof *check);
    check->options = *options;
    pg_pool_submit(options->pool, SELFCHECK_SAMPLE, NULL, on_answer, check);
    return check;
}

void selfcheck_cancel(struct selfcheck *check)
{
    if (check)
        check->cancelled = true;
}

/* ---- the keeper in its thread ---- */

struct guard {
    uv_thread_t thread;
    struct config *config;
    int listener, cache_listener;
    uint16_t port, cache_port;
    int status;
};

static void run_keeper(void *arg)
{
    struct guard *guard = arg;
    bool handed_over;
    struct keeper_options options = {.config = guard->config,
                                     .file = "/nonexistent",
                                     .sockets = &(struct keeper_socket){0, 0, guard->listener},
                                     .socket_count = 1,
                                     .control_fd = -1,
                                     .predecessor = -1};
    guard->status = keeper_run(&options, &handed_over);
    assert_false(handed_over);
}

static void start_guard(struct guard *guard, const char *settings)
{
    char text[1000];
    *guard = (struct guard){.status = -1};
    atomic_store(&building, NULL);
    signal(SIGPIPE, SIG_IGN);
    guard->listener = listen_somewhere(&guard->port, SOCK_NONBLOCK);
    guard->cache_listener = listen_somewhere(&guard->cache_port, 0);
    assert_int_equal(listen(guard->cache_listener, 10), 0);
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1:%u\ndatabase: host=127.0.0.1 port=1\nsync: none\n"
             "workers: 1\ncache_connections: 1\nload_connections: 1\ndrain_timeout: 1s\n%s"
             "keyspaces:\n  - {name: items, key: \"item:{id}\", table: items, on_miss: pass}\n",
             (unsigned)guard->cache_port, settings);
    guard->config = config_from_text(text);
    assert_int_equal(uv_thread_create(&guard->thread, run_keeper, guard), 0);
}

static void end_guard(struct guard *guard)
{
    kill(getpid(), SIGTERM);
    uv_thread_join(&guard->thread);
    assert_int_equal(guard->status, 0);
    close(guard->cache_listener);
}

/* ---- a cache that has every key ---- */

enum { CACHE_CONNECTIONS = 8 };

struct cache {
    struct pollfd watched[CACHE_CONNECTIONS];
    nfds_t count;
    unsigned gets;
};

/* Whoever it is for, and whatever else it says of itself, it does not tell. */
static const char *answer_to(const char *command)
{
    static const struct {
        const char *name, *reply;
    } rows[] = {{"SELECT", "+OK\r\n"},
                {"ROLE", "*3\r\n$6\r\nmaster\r\n:3\r\n*0\r\n"},
                {"PING", "+PONG\r\n"},
                {"SET", "+OK\r\n"},
                {"GET", "$1\r\nv\r\n"}};
    const char *length = strchr(command, '$'), *name = length ? strchr(length, '\n') : NULL;
    for (size_t i = 0; name && i < sizeof rows / sizeof *rows; i++)
        if (strncmp(name + 1, rows[i].name, strlen(rows[i].name)) == 0)
            return rows[i].reply;
    return "-NOPERM no\r\n";
}

static void serve_some(struct cache *cache)
{
    char bytes[4096];
    assert_true(poll(cache->watched, cache->count, 5) >= 0);
    if (cache->watched[0].revents && cache->count < CACHE_CONNECTIONS)
        cache->watched[cache->count++] =
            (struct pollfd){.fd = accept(cache->watched[0].fd, NULL, NULL), .events = POLLIN};
    for (nfds_t i = 1; i < cache->count; i++) {
        if (!cache->watched[i].revents)
            continue;
        ssize_t length = recv(cache->watched[i].fd, bytes, sizeof bytes - 1, MSG_DONTWAIT);
        if (length <= 0)
            continue;
        bytes[length] = '\0';
        for (char *at = bytes; (at = strchr(at, '*')); at++)
            say(cache->watched[i].fd, answer_to(at));
        cache->gets += strstr(bytes, "GET") != NULL;
    }
}

/* Sends a command and waits for its reply; true: the cache gave it. */
static bool reaches_cache(struct cache *cache, int client, const char *command)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    struct pollfd reply = {.fd = client, .events = POLLIN};
    char bytes[100];
    say(client, command);
    while (poll(&reply, 1, 0) == 0) {
        serve_some(cache);
        assert_true(clock_ms() < until);
    }
    ssize_t length = recv(client, bytes, sizeof bytes, 0);
    assert_true(length > 0);
    return bytes[0] == '+' || (bytes[0] == '$' && bytes[1] == '1');
}

static void wait_until_guarding(struct cache *cache, int client, const char *absent)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (reaches_cache(cache, client, absent))
        assert_true(clock_ms() < until);
}

/* ---- hints ---- */

/* Nothing but a lookup passes for it, and nothing is built: the client is told instead. */
static void a_hint_for_which_there_is_no_place_harms_nobody(void **state)
{
    struct guard guard;
    struct cache cache = {.count = 1};
    (void)state;
    start_guard(&guard, "max_hints: 1\n");
    cache.watched[0] = (struct pollfd){.fd = guard.cache_listener, .events = POLLIN};
    wait_for_build(1); /* the worker listens by then */
    int client = connect_to(guard.port);
    end_build(1);
    wait_until_guarding(&cache, client, "GET item:none\r\n");
    assert_true(reaches_cache(&cache, client, "SET item:a v\r\n"));
    assert_false(reaches_cache(&cache, client, "SET item:b v\r\n")); /* one too many */
    assert_true(reaches_cache(&cache, client, "GET item:a\r\n"));
    assert_false(reaches_cache(&cache, client, "GET item:b\r\n"));
    close(client);
    end_guard(&guard);
    for (nfds_t i = 1; i < cache.count; i++)
        close(cache.watched[i].fd);
}

/* A hint that has its place outlasts the build under way, and ends with the next. */
static void a_hint_holds_over_the_build_that_was_under_way(void **state)
{
    struct guard guard;
    struct cache cache = {.count = 1};
    (void)state;
    start_guard(&guard, "hint_ttl: 10ms\n");
    cache.watched[0] = (struct pollfd){.fd = guard.cache_listener, .events = POLLIN};
    wait_for_build(1); /* the worker listens by then */
    int client = connect_to(guard.port);
    assert_true(reaches_cache(&cache, client, "SET item:a v\r\n"));
    end_build(1);
    wait_until_guarding(&cache, client, "GET item:none\r\n");
    uv_sleep(20);
    assert_true(reaches_cache(&cache, client, "GET item:a\r\n"));
    close(client);
    end_guard(&guard);
    for (nfds_t i = 1; i < cache.count; i++)
        close(cache.watched[i].fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hint_for_which_there_is_no_place_harms_nobody),
        cmocka_unit_test(a_hint_holds_over_the_build_that_was_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
