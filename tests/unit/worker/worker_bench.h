/* A real worker thread between clients, a cache and a keeper that the test plays itself.
 *
 *   client sockets ─▶ worker ─▶ cache socket      the test reads and writes both ends, so that it
 *                        └────▶ keeper's mailbox  decides what arrives when
 */
#ifndef NESTGUARD_TEST_WORKER_BENCH_H
#define NESTGUARD_TEST_WORKER_BENCH_H

#include "base/clock.h"
#include "base/memory.h"
#include "fakes/cache.h"
#include "fakes/keeper.h"
#include "fakes/keyspaces.h"
#include "fakes/log.h"
#include "fakes/peer.h"
#include "worker/client/client.h"
#include "worker/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Commands and replies as they are on the wire. */
#define GET_ITEM_1 "*2\r\n$3\r\nGET\r\n$6\r\nitem:1\r\n"
#define GET_ITEM_2 "*2\r\n$3\r\nGET\r\n$6\r\nitem:2\r\n"
#define GET_PASSED "*2\r\n$3\r\nGET\r\n$8\r\npassed:1\r\n"
#define GET_ABSENT "*2\r\n$3\r\nGET\r\n$10\r\nitem:nothe\r\n"
#define MGET "*4\r\n$4\r\nMGET\r\n$6\r\nitem:1\r\n$5\r\nother\r\n$6\r\nitem:2\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"
#define SET_NEW "*3\r\n$3\r\nSET\r\n$8\r\nitem:new\r\n$1\r\nv\r\n"
#define GET_NEW "*2\r\n$3\r\nGET\r\n$8\r\nitem:new\r\n"
#define NIL "$-1\r\n"
#define NOT_ALLOWED "-NOPERM this user may not\r\n"
#define OWN_WELCOME "+OK\r\n"
/* CLIENT NO-EVICT is not known everywhere, and CONFIG is not for everybody. */
#define WELCOME OWN_WELCOME NOT_ALLOWED NOT_ALLOWED NOT_ALLOWED
#define CACHE_DOWN "-NESTGUARD cache down\r\n"

struct bench {
    int listener, cache_listener; /* the worker's port; the cache's */
    uint16_t port, cache_port;
    int cache; /* the worker's connection, without what it asks by itself */
    struct shared_config *shared;
    struct generation *generation;
    struct view *view;
    struct worker *worker;
    atomic_uint client_total;
    struct fake_keeper keeper;
};

/* ---- the cache ---- */

static inline int accept_upstream(struct bench *bench)
{
    must_be_readable(bench->cache_listener, "the worker's connection to the cache");
    int worker = accept(bench->cache_listener, NULL, NULL);
    assert_true(worker >= 0);
    int fd = fake_cache_join(worker);
    must_hear(fd, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
    return fd;
}

static inline void cache_says(int cache, const char *replies)
{
    fake_cache_say(cache, replies, strlen(replies));
}

/* One that a client has of its own, and that is up once its greeting is read. */
static inline int accept_own(struct bench *bench)
{
    int fd = accept_upstream(bench);
    must_hear(fd, "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n");
    cache_says(fd, OWN_WELCOME ":7\r\n");
    return fd;
}

static inline int accept_cache(struct bench *bench)
{
    int fd = accept_upstream(bench);
    must_hear(fd, "*3\r\n$6\r\nCLIENT\r\n$8\r\nNO-EVICT\r\n$2\r\nON\r\n"
                  "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$18\r\nproto-max-bulk-len\r\n"
                  "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxclients\r\n");
    return fd;
}

static inline void serve_cache(struct bench *bench)
{
    bench->cache = accept_cache(bench);
    cache_says(bench->cache, WELCOME);
}

/* ---- the clients ---- */

static inline int connect_client(const struct bench *bench)
{
    return connect_to(bench->port);
}

/* One command goes through to the cache and back. */
static inline void must_serve(struct bench *bench, int client)
{
    say(client, PING);
    must_hear(bench->cache, PING);
    cache_says(bench->cache, "+PONG\r\n");
    must_hear(client, "+PONG\r\n");
}

static inline void must_lose_clients(struct bench *bench, unsigned left)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (atomic_load(&bench->client_total) != left) {
        assert_true(clock_ms() < until);
        uv_sleep(1);
    }
}

/* ---- the keeper's orders ---- */

static inline void order(struct bench *bench, struct message *message)
{
    send_order(&bench->keeper, &bench->worker->serving.mailbox, message);
}

/* The view has two holders, as ever: the test and the worker. */
static inline void send_view(struct bench *bench, enum keyspace_state state)
{
    struct view_message *message = xcalloc(1, sizeof *message);
    message->message = (struct message){.kind = MESSAGE_VIEW};
    view_release(bench->view);
    bench->view = keyspaces_view(bench->shared, bench->generation, state, 2);
    message->view = bench->view;
    order(bench, &message->message);
}

static inline void send_entry(struct bench *bench, const char *key, struct override entry)
{
    struct override_message *message = xcalloc(1, sizeof *message + strlen(key));
    message->message = (struct message){.kind = MESSAGE_OVERRIDE};
    message->entry = entry;
    message->key = key_copy(key_make(0, span_of(key)), message->text);
    order(bench, &message->message);
}

static inline void send_override(struct bench *bench, const char *key, enum override_kind kind)
{
    send_entry(bench, key, (struct override){.kind = kind, .until = clock_ms() + 60000});
}

static inline void send_block(struct bench *bench, const char *key)
{
    send_entry(bench, key, (struct override){.blocked_until = clock_ms() + 60000});
}

static inline void send_drain(struct bench *bench)
{
    struct message *message = xcalloc(1, sizeof *message);
    *message = (struct message){.kind = MESSAGE_DRAIN, .sender = &bench->keeper.mailbox};
    mailbox_post(&bench->worker->serving.mailbox, message);
}

/* ---- life ---- */

/* The connection to the cache is not accepted yet. */
static inline void bench_start(struct bench *bench, const char *settings)
{
    *bench = (struct bench){.cache = -1};
    atomic_store(&log_errors, 0);
    atomic_store(&log_warnings, 0);
    signal(SIGPIPE, SIG_IGN);
    bench->listener = listen_somewhere(&bench->port, SOCK_NONBLOCK);
    bench->cache_listener = listen_somewhere(&bench->cache_port, 0);
    assert_int_equal(listen(bench->cache_listener, 10), 0);
    bench->shared = keyspaces_config(bench->cache_port, settings);
    bench->generation = keyspaces_generation();
    bench->view = keyspaces_view(bench->shared, bench->generation, KEYSPACE_GUARDING, 2);
    fake_keeper_init(&bench->keeper);
    struct worker_options options = {.keeper = &bench->keeper.mailbox,
                                     .view = bench->view,
                                     .fds = &bench->listener,
                                     .addresses = &(struct address){.port = 1},
                                     .count = 1,
                                     .client_total = &bench->client_total};
    assert_int_equal(worker_create(&bench->worker, &options), 0);
}

static inline void bench_init(struct bench *bench)
{
    bench_start(bench, "");
    serve_cache(bench);
}

/* The worker has ended by its own: nothing of it may be left. */
static inline void bench_free(struct bench *bench)
{
    must_drain(&bench->keeper);
    assert_int_equal(bench->keeper.inbox_count, 0);
    assert_int_equal(atomic_load(&log_errors), 0); /* one tells of a loop that could not close */
    assert_int_equal(atomic_load(&bench->client_total), 0);
    assert_int_equal(counter_read(&bench->worker->serving.counters.clients), 0);
    view_release(bench->worker->serving.view);
    worker_destroy(bench->worker);
    view_release(bench->view);
    generation_release(bench->generation);
    shared_config_release(bench->shared);
    fake_keeper_finish(&bench->keeper);
    close(bench->cache_listener);
    if (bench->cache >= 0)
        close(bench->cache);
    fake_cache_finish();
}

static inline void bench_finish(struct bench *bench)
{
    send_drain(bench);
    bench_free(bench);
}

#define COUNTED(bench, keyspace, name)                                                             \
    ((int)counter_read(&(bench)->worker->serving.keyspaces[keyspace].name))

#endif
