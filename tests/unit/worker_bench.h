/* A real worker thread between clients, a cache and a keeper that the test plays itself.
 *
 *   client sockets ─▶ worker ─▶ cache socket      the test reads and writes both ends, so that it
 *                        └────▶ keeper's mailbox  decides what arrives when
 */
#ifndef NESTGUARD_TEST_WORKER_BENCH_H
#define NESTGUARD_TEST_WORKER_BENCH_H

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "config_text.h"
#include "worker/client/client.h"
#include "worker/worker.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>

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
#define WELCOME "+OK\r\n" NOT_ALLOWED NOT_ALLOWED /* CONFIG is not for everybody */
#define CACHE_DOWN "-NESTGUARD cache down\r\n"

enum { PATIENCE_MS = 10000, KEEPER_MESSAGES = 4096 };
enum { ITEMS, SHADOWS, PASSED, KEYSPACES };

/* The log of the worker: its thread reports here what would be a line. */
static atomic_uint log_errors, log_warnings;

void log_line(enum log_level level, const char *format, ...)
{
    char line[500];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    atomic_fetch_add(level == LOG_LEVEL_ERROR ? &log_errors : &log_warnings,
                     level != LOG_LEVEL_INFO);
    if (level == LOG_LEVEL_ERROR)
        fprintf(stderr, "%s\n", line);
}

struct bench {
    int listener, cache_listener; /* the worker's port; the cache's */
    uint16_t port, cache_port;
    int cache; /* the worker's connection */
    struct shared_config *shared;
    struct generation *generation;
    struct view *view;
    struct worker *worker;
    atomic_uint client_total;

    uv_loop_t loop;
    struct mailbox keeper;
    struct message *inbox[KEEPER_MESSAGES];
    size_t inbox_count;
    size_t orders; /* sent to the worker, and not come back yet */
    bool drained;
};

/* ---- sockets ---- */

static inline int listen_somewhere(uint16_t *port, int flags)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, length), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &length), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

static inline void must_be_readable(int fd, const char *for_what)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (poll(&wait, 1, PATIENCE_MS) != 1)
        fail_msg("nothing came: %s", for_what);
}

static inline void say_bytes(int fd, const char *bytes, size_t length)
{
    while (length > 0) { /* the kernel may cut a long one in two */
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        assert_true(sent > 0 || errno == EINTR);
        bytes += sent > 0 ? sent : 0;
        length -= sent > 0 ? (size_t)sent : 0;
    }
}

static inline void say(int fd, const char *text)
{
    say_bytes(fd, text, strlen(text));
}

/* Exactly these bytes must come next. */
static inline void must_hear_bytes(int fd, const char *wanted, size_t length)
{
    char *got = xmalloc(length + 1);
    size_t have = 0;
    while (have < length) {
        must_be_readable(fd, wanted);
        ssize_t count = recv(fd, got + have, length - have, 0);
        if (count <= 0)
            fail_msg("the connection ended before: %s", wanted + have);
        have += (size_t)count;
    }
    got[have] = '\0';
    if (memcmp(got, wanted, length) != 0)
        fail_msg("not \"%s\" came, but \"%s\"", wanted, got);
    free(got);
}

static inline void must_hear(int fd, const char *wanted)
{
    must_hear_bytes(fd, wanted, strlen(wanted));
}

/* Nothing may come: for a moment, since no event tells that. */
static inline void must_be_silent(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 30), 0);
}

/* The other side must close, after these last bytes. */
static inline void must_end(int fd, const char *last)
{
    char byte;
    must_hear(fd, last);
    must_be_readable(fd, "the end");
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

/* ---- the cache ---- */

/* One that a client has of its own. */
static inline int accept_own(struct bench *bench)
{
    must_be_readable(bench->cache_listener, "the worker's connection to the cache");
    int fd = accept(bench->cache_listener, NULL, NULL);
    assert_true(fd >= 0);
    must_hear(fd, "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n");
    return fd;
}

static inline int accept_cache(struct bench *bench)
{
    int fd = accept_own(bench);
    must_hear(fd, "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$18\r\nproto-max-bulk-len\r\n"
                  "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxclients\r\n");
    return fd;
}

static inline void serve_cache(struct bench *bench)
{
    bench->cache = accept_cache(bench);
    say(bench->cache, WELCOME);
}

/* ---- the clients ---- */

static inline int connect_client(const struct bench *bench)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons(bench->port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

/* Resets the connection, so that the worker hears of it at once. */
static inline void vanish(int fd)
{
    struct linger at_once = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(fd);
}

/* One command goes through to the cache and back. */
static inline void must_serve(struct bench *bench, int client)
{
    say(client, PING);
    must_hear(bench->cache, PING);
    say(bench->cache, "+PONG\r\n");
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

/* ---- the keeper ---- */

static inline void take_message(void *arg, struct message *message)
{
    struct bench *bench = arg;
    switch (message->kind) {
    case MESSAGE_VIEW:
        view_release(((struct view_message *)message)->view);
        bench->orders--;
        free(message);
        break;
    case MESSAGE_OVERRIDE:
        bench->orders--;
        free(message);
        break;
    case MESSAGE_DRAIN:
        bench->drained = true;
        free(message);
        break;
    default:
        assert_true(bench->inbox_count < KEEPER_MESSAGES);
        bench->inbox[bench->inbox_count++] = message;
    }
}

/* The oldest request of the worker, taken out; waits for it. */
static inline struct message *next_message(struct bench *bench, enum message_kind kind)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (!bench->inbox_count) {
        uv_run(&bench->loop, UV_RUN_NOWAIT);
        if (clock_ms() > until)
            fail_msg("the keeper was not asked");
        uv_sleep(1);
    }
    struct message *message = bench->inbox[0];
    memmove(bench->inbox, bench->inbox + 1, --bench->inbox_count * sizeof message);
    assert_int_equal(message->kind, kind);
    return message;
}

static inline struct load_request *next_load(struct bench *bench, const char *key)
{
    struct load_request *request = (struct load_request *)(void *)next_message(bench, MESSAGE_LOAD);
    assert_true(span_is(request->key.text, key));
    return request;
}

static inline struct write_request *next_hint(struct bench *bench, const char *key)
{
    struct write_request *hint = (struct write_request *)(void *)next_message(bench, MESSAGE_WRITE);
    assert_true(hint->done && hint->wants_hint);
    assert_true(span_is(hint->key.text, key));
    return hint;
}

static inline void return_row(struct load_request *request, const char *value)
{
    char *bytes;
    request->outcome = LOAD_ROW;
    request->value = blob_create(strlen(value), &bytes);
    memcpy(bytes, value, strlen(value));
    mailbox_return(&request->message);
}

static inline void return_outcome(struct load_request *request, enum load_outcome outcome)
{
    request->outcome = outcome;
    request->value = NULL;
    mailbox_return(&request->message);
}

static inline void must_not_ask(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    assert_int_equal(bench->inbox_count, 0);
}

/* Sends an order, and waits until the worker has obeyed it. */
static inline void send_order(struct bench *bench, struct message *message)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    bench->orders++;
    mailbox_post(&bench->worker->serving.mailbox, message);
    while (bench->orders) {
        uv_run(&bench->loop, UV_RUN_NOWAIT);
        if (clock_ms() > until)
            fail_msg("the worker does not obey");
        uv_sleep(1);
    }
}

/* The view has two holders, as ever: the test and the worker. */
static inline void send_view(struct bench *bench, enum keyspace_state state)
{
    enum keyspace_state states[KEYSPACES] = {state, state, state};
    struct view_message *message = xcalloc(1, sizeof *message);
    message->message = (struct message){.kind = MESSAGE_VIEW, .sender = &bench->keeper};
    view_release(bench->view);
    bench->view = view_create(bench->shared, bench->generation, states, 2);
    message->view = bench->view;
    send_order(bench, &message->message);
}

static inline void send_entry(struct bench *bench, const char *key, struct override entry)
{
    struct override_message *message = xcalloc(1, sizeof *message + strlen(key));
    message->message = (struct message){.kind = MESSAGE_OVERRIDE, .sender = &bench->keeper};
    message->entry = entry;
    message->key = key_copy(key_make(0, span_of(key)), message->text);
    send_order(bench, &message->message);
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
    *message = (struct message){.kind = MESSAGE_DRAIN, .sender = &bench->keeper};
    mailbox_post(&bench->worker->serving.mailbox, message);
}

static inline void must_drain(struct bench *bench)
{
    uint64_t until = clock_ms() + PATIENCE_MS;
    while (!bench->drained) {
        uv_run(&bench->loop, UV_RUN_NOWAIT);
        if (clock_ms() > until)
            fail_msg("the worker does not end");
        uv_sleep(1);
    }
}

/* ---- life ---- */

static inline void make_generation(struct bench *bench)
{
    struct filter_options options = {.capacity = 1000, .false_positive_rate = 1e-7};
    const char *error;
    char key[30];
    bench->generation = generation_create(1, KEYSPACES);
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&bench->generation->filters[i], &options, &error), 0);
    for (int i = 0; i < 300; i++) {
        static const char *const names[] = {"item", "shadow", "passed"};
        snprintf(key, sizeof key, "%s:%d", names[i % 3], i / 3);
        uint64_t hash = filter_hash(&bench->generation->seed, key, strlen(key));
        assert_int_equal(filter_insert(bench->generation->filters[i % 3], hash), 0);
    }
}

/* Guards item:0 to item:99, shadow:0 to shadow:99 and passed:0 to passed:99; the connection to the
 * cache is not accepted yet. */
static inline void bench_start(struct bench *bench, const char *settings)
{
    char text[2000];
    *bench = (struct bench){.cache = -1};
    atomic_store(&log_errors, 0);
    atomic_store(&log_warnings, 0);
    signal(SIGPIPE, SIG_IGN);
    bench->listener = listen_somewhere(&bench->port, SOCK_NONBLOCK);
    bench->cache_listener = listen_somewhere(&bench->cache_port, 0);
    assert_int_equal(listen(bench->cache_listener, 10), 0);
    snprintf(text, sizeof text,
             "cache: redis://127.0.0.1:%u\ndatabase: postgresql://app@db/shop\nsync: none\n"
             "cache_connections: 1\n%skeyspaces:\n"
             "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
             "  - {name: shadows, key: \"shadow:{id}\", table: items, value: v, enforce: false}\n"
             "  - {name: passed, key: \"passed:{id}\", table: items, on_miss: pass,\n"
             "     on_absent: value, absent_value: nope}\n",
             (unsigned)bench->cache_port, settings);
    bench->shared = shared_config_create(config_from_text(text));
    make_generation(bench);
    enum keyspace_state states[] = {KEYSPACE_GUARDING, KEYSPACE_GUARDING, KEYSPACE_GUARDING};
    bench->view = view_create(bench->shared, bench->generation, states, 2);
    uv_loop_init(&bench->loop);
    assert_int_equal(mailbox_init(&bench->keeper, &bench->loop, take_message, bench), 0);
    struct worker_options options = {.keeper = &bench->keeper,
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
    must_drain(bench);
    assert_int_equal(bench->inbox_count, 0);
    assert_int_equal(atomic_load(&log_errors), 0); /* one tells of a loop that could not close */
    assert_int_equal(atomic_load(&bench->client_total), 0);
    assert_int_equal(counter_read(&bench->worker->serving.counters.clients), 0);
    view_release(bench->worker->serving.view);
    worker_destroy(bench->worker);
    view_release(bench->view);
    generation_release(bench->generation);
    shared_config_release(bench->shared);
    mailbox_close(&bench->keeper);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    close(bench->cache_listener);
    if (bench->cache >= 0)
        close(bench->cache);
}

static inline void bench_finish(struct bench *bench)
{
    send_drain(bench);
    bench_free(bench);
}

#define COUNTED(bench, keyspace, name)                                                             \
    ((int)counter_read(&(bench)->worker->serving.keyspaces[keyspace].name))

#endif
