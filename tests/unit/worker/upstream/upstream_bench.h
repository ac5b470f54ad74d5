/* A connection to the cache, whose other end the test holds. */
#ifndef NESTGUARD_UPSTREAM_BENCH_H
#define NESTGUARD_UPSTREAM_BENCH_H

#include "worker/upstream/upstream.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fakes/peer.h"
#include "fakes/serving.h"

#define ROLE "*1\r\n$4\r\nROLE\r\n"
#define SELECT "*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n" ROLE
#define PRIMARY "*3\r\n$6\r\nmaster\r\n:3\r\n*0\r\n"
#define REPLICA "*5\r\n$5\r\nslave\r\n$1\r\nh\r\n:1\r\n$4\r\nsync\r\n:-1\r\n"
#define SERVER "*2\r\n$4\r\nINFO\r\n$6\r\nserver\r\n"
#define LIMITS                                                                                     \
    SERVER "*3\r\n$6\r\nCLIENT\r\n$8\r\nNO-EVICT\r\n$2\r\nON\r\n"                                  \
           "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$18\r\nproto-max-bulk-len\r\n"                      \
           "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$10\r\nmaxclients\r\n"
#define CLIENT_ID SERVER "*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n"
#define OK "+OK\r\n"
#define NOT_SAID "-NOPERM no\r\n"
/* INFO, CLIENT NO-EVICT and CONFIG are not for everybody. */
#define NO_LIMITS NOT_SAID NOT_SAID NOT_SAID NOT_SAID
#define WELCOME OK PRIMARY NO_LIMITS
#define DOWN "NESTGUARD cache down"

/* What came of the requests and for the owner, in order. */
static char heard[1000];
static struct fake_serving fake;
static struct serving *serving;
static struct replies replies;
static struct turn_task task;
static int listener, cache;
static struct upstream *under_test;
static bool is_shared;

static inline void hear(const char *what, struct span bytes)
{
    size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s%.*s|", what, (int)bytes.length, bytes.at);
}

static inline void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    char what[20];
    (void)slot;
    snprintf(what, sizeof what, "%u:", index);
    hear(what, (struct span){reply.at, reply.length - 2});
}

static inline void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    char what[20];
    (void)slot;
    snprintf(what, sizeof what, "%u failed ", index);
    hear(what, span_of(why));
}

static const struct reply_slot_kind plain = {.on_cache = take_reply,
                                             .on_cache_failure = take_failure};

static inline bool takes(struct client *client, struct upstream *upstream, struct span frame)
{
    (void)client;
    (void)upstream;
    if (frame.at[0] != '*' && frame.at[0] != 'r')
        return false;
    hear("owner ", frame);
    return true;
}

static inline void lost(struct client *client, struct upstream *upstream)
{
    (void)client;
    (void)upstream;
    hear("lost", span_of(""));
}

static const struct upstream_owner owner = {.takes = takes, .lost = lost};
static const struct upstream_options shared = {.resp3 = false};
static const struct upstream_options owned = {.owner = &owner};

static inline struct upstream *begin(const struct upstream_options *options)
{
    is_shared = options == &shared;
    return under_test = upstream_create(serving, options);
}

static inline void end(void)
{
    if (under_test)
        upstream_close(under_test);
    under_test = NULL;
}

static inline void no_task(struct turn_task *task_)
{
    (void)task_;
}

/* Turns the loop until that has been heard. */
static inline void must_come(const char *wanted)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while (strlen(heard) < strlen(wanted) && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_string_equal(heard, wanted);
    heard[0] = '\0';
}

/* Turns the loop until the other end can be read, or accepted. */
static inline void turn_until_readable(int fd)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    char byte;
    while (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
}

static inline void must_arrive(const char *bytes)
{
    char got[2000];
    size_t have = 0, wanted = strlen(bytes);
    while (have < wanted) {
        turn_until_readable(cache);
        ssize_t count = recv(cache, got + have, wanted - have, MSG_DONTWAIT);
        assert_true(count > 0);
        have += (size_t)count;
    }
    assert_memory_equal(got, bytes, wanted);
}

static inline void must_not_arrive(void)
{
    char byte;
    for (int i = 0; i < 20; i++)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(recv(cache, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0);
}

static inline void accept_it(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    while ((cache = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) < 0 && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(cache >= 0);
}

static inline bool is_up(void)
{
    const struct worker_counters *counters = &serving->counters;
    return counter_read(&counters->shared_connections) + counter_read(&counters->own_connections);
}

static inline void greet_it(void)
{
    uint64_t until = uv_hrtime() + UINT64_C(1000000) * PATIENCE_MS;
    accept_it();
    must_arrive(is_shared ? SELECT LIMITS : SELECT CLIENT_ID);
    say(cache, is_shared ? WELCOME : OK PRIMARY NOT_SAID ":7\r\n");
    while (!is_up() && uv_hrtime() < until)
        uv_run(&serving->loop, UV_RUN_NOWAIT);
    assert_true(is_up());
    assert_int_equal(upstream_cache_id(under_test), is_shared ? 0 : 7);
}

/* Request number `index`, whose bytes are its number. */
static inline void ask_in(struct upstream *upstream, unsigned index,
                          const struct reply_slot_kind *kind, const char *bytes)
{
    struct reply_slot *slot = reply_slot_open(&replies, kind);
    upstream_send(upstream, slot, index, span_of(bytes));
    reply_slot_answered(slot);
}

static inline void ask_as(struct upstream *upstream, unsigned index,
                          const struct reply_slot_kind *kind)
{
    char bytes[20];
    snprintf(bytes, sizeof bytes, "%u\r\n", index);
    ask_in(upstream, index, kind, bytes);
}

static inline void ask(struct upstream *upstream, unsigned index)
{
    ask_as(upstream, index, &plain);
}

static inline int open_serving(void **state)
{
    uint16_t port;
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    listener = listen_somewhere(&port, SOCK_NONBLOCK);
    assert_int_equal(listen(listener, 10), 0);
    commands_prepare();
    fake_serving_init(&fake, port, "cache_timeout: 200ms\n", NULL, NULL);
    serving = fake.serving;
    task = (struct turn_task){.run = no_task, .phase = TURN_WRITE};
    replies = (struct replies){.serving = serving, .task = &task};
    heard[0] = '\0';
    cache = -1;
    return 0;
}

static inline int close_serving(void **state)
{
    (void)state;
    end();
    replies_abandon(&replies);
    buffer_finish(&replies.out);
    fake_serving_finish(&fake); /* an upstream that is closed leaves nothing in the loop */
    close(listener);
    if (cache >= 0)
        close(cache);
    return 0;
}

#endif
