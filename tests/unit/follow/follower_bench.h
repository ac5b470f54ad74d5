/* A follower fed with messages made by hand, through a stream that the test holds in its hands. */
#ifndef NESTGUARD_TEST_FOLLOWER_BENCH_H
#define NESTGUARD_TEST_FOLLOWER_BENCH_H

#include "follow/follower.h"

#include "fakes/config_file.h"
#include "fakes/pg_stream.h"
#include "fakes/walsender.h"

#include <errno.h>
#include <stdio.h>

enum { ITEMS, ORDERS, OTHERS, KEYSPACES };
enum { ITEM_TABLE = 101, ORDER_TABLE, AUTHOR_TABLE, LINE_TABLE, XID = 7 };

static const char text[] =
    "cache: redis://127.0.0.1\n"
    "database: postgresql://app@db/shop\n"
    "sync: replication\n"
    "keyspaces:\n"
    "  - {name: items, key: \"item:{id}\", table: items, value: v}\n"
    "  - {name: orders, key: \"order:{customer}:{number}\", table: orders, value: v,\n"
    "     depends: [authors, lines on nr = number and who = customer]}\n"
    "  - {name: others, key: \"other:{name}\", table: items, value: v}\n";

/* ---- what the follower tells ---- */

struct bench {
    uv_loop_t loop;
    struct config *config;
    struct generation *generation;
    struct follower *follower;
    char heard[4096]; /* "changed item:1, inserted item:1, ", as far as it has room */
    uint32_t xid;     /* of what was heard last */
    uint64_t events;  /* about rows, all that were told */
    uint64_t reached;
    unsigned asked; /* for a word for removals, */
    bool crowded;   /* and whether the last time in need */
    char fault[300];
    void (*watcher)(void *arg, int keyspace, struct span key); /* of each key that changed */
};

static void hear(struct bench *bench, const char *what, struct span key)
{
    size_t used = strlen(bench->heard);
    bench->events++;
    if (sizeof bench->heard - used < 64)
        return;
    snprintf(bench->heard + used, sizeof bench->heard - used, "%s %.*s, ", what, (int)key.length,
             key.at);
}

static void hear_key(struct bench *bench, const struct key_change *change)
{
    hear(bench, "changed", change->key.text);
    if (change->cause == CAUSE_INSERTED)
        hear(bench, "inserted", change->key.text);
    if (bench->watcher)
        bench->watcher(bench, change->key.keyspace, change->key.text);
}

static void on_change(void *arg, const struct key_change *change)
{
    struct bench *bench = arg;
    struct span name = span_of(bench->config->keyspaces[change->key.keyspace].name);
    bench->xid = change->xid;
    assert_ptr_equal(change->generation, bench->generation);
    if (change->cause == CAUSE_UNTOLD)
        hear(bench, "unknown in", name);
    else if (change->cause == CAUSE_DEPENDED)
        hear(bench, "depended", name);
    else if (change->cause == CAUSE_TRUNCATED)
        hear(bench, "truncated", name);
    else if (change->cause == CAUSE_LEFT)
        hear(bench, "left in", name);
    else
        hear_key(bench, change);
}

static void on_reached(void *arg, uint64_t lsn)
{
    ((struct bench *)arg)->reached = lsn;
}

static void on_fault(void *arg, const char *why)
{
    struct bench *bench = arg;
    snprintf(bench->fault, sizeof bench->fault, "%s", why);
}

static void on_unvouched(void *arg, bool crowded)
{
    struct bench *bench = arg;
    bench->asked++;
    bench->crowded = crowded;
}

static const struct follower_events events = {
    .reached = on_reached, .unvouched = on_unvouched, .fault = on_fault};

static void bench_init_with(struct bench *bench, size_t capacity)
{
    static const uint32_t tables[] = {ITEM_TABLE, ORDER_TABLE, ITEM_TABLE, AUTHOR_TABLE,
                                      LINE_TABLE};
    struct filter_options options = {.capacity = capacity, .false_positive_rate = 1e-7};
    struct pg_error error;
    const char *why;
    memset(bench, 0, sizeof *bench);
    memset(&stream, 0, sizeof stream);
    uv_loop_init(&bench->loop);
    bench->config = config_from_text(text);
    bench->generation = generation_create(1, KEYSPACES);
    for (size_t i = 0; i < KEYSPACES; i++)
        assert_int_equal(filter_create(&bench->generation->filters[i], &options, &why), 0);
    struct follower_options follow = {.config = bench->config,
                                      .generation = bench->generation,
                                      .tables = tables,
                                      .identities = "fdfdf",
                                      .changes = {on_change, bench},
                                      .events = &events,
                                      .arg = bench};
    assert_int_equal(follower_start(&bench->follower, &bench->loop, &follow, &error), 0);
}

static inline void bench_init(struct bench *bench)
{
    bench_init_with(bench, 1000);
}

static void bench_finish(struct bench *bench)
{
    follower_close(bench->follower);
    assert_true(stream.closed);
    stream.on_closed(stream.closed_arg);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    generation_release(bench->generation);
    config_destroy(bench->config);
}

/* ---- messages ---- */

static int feed(struct log_message message)
{
    assert_false(stream.paused);
    if (stream.writer)
        message = streamed_by(message, stream.writer);
    return stream.events->message(stream.arg, 1, message.at, message.length);
}

static void must_take(struct log_message message)
{
    assert_int_equal(feed(message), 0);
}

static inline void begin(void)
{
    must_take(compose("cqqw", 'B', UINT64_C(900), UINT64_C(1), XID));
}

static inline void commit(uint64_t end)
{
    stream.committed = XID;
    must_take(compose("ccqqq", 'C', 0, end - 10, end, UINT64_C(5000000)));
}

static inline void stream_start(uint32_t xid, bool first)
{
    must_take(compose("cwc", 'S', xid, first));
    stream.writer = xid;
}

static inline void stream_stop(void)
{
    stream.writer = 0;
    must_take(compose("c", 'E'));
}

static inline void stream_commit(uint32_t xid, uint64_t end)
{
    stream.committed = xid;
    must_take(compose("cwcqqq", 'c', xid, 0, end - 10, end, UINT64_C(5000000)));
}

static inline void stream_abort(uint32_t xid, uint32_t subxid)
{
    must_take(compose("cww", 'A', xid, subxid));
}

/* items(v, id, name), with `name` and `id` behind another column, so that places matter. */
static inline void describe_items(void)
{
    must_take(compose("cwsschcswwcswwcsww", 'R', ITEM_TABLE, "public", "items", 'f', 3, 0, "v", 25,
                      -1, 1, "id", 20, -1, 1, "name", 25, -1));
}

static inline void describe_orders(void)
{
    must_take(compose("cwsschcswwcsww", 'R', ORDER_TABLE, "public", "orders", 'd', 2, 1, "number",
                      20, -1, 1, "customer", 25, -1));
}

static inline void insert_item(const char *id, const char *name)
{
    must_take(compose("cwchttt", 'I', ITEM_TABLE, 'N', 3, "x", id, name));
}

static inline void delete_item(const char *id, const char *name)
{
    must_take(compose("cwchttt", 'D', ITEM_TABLE, 'O', 3, "x", id, name));
}

static inline uint64_t hash_of(const struct bench *bench, const char *key)
{
    return filter_hash(&bench->generation->seed, key, strlen(key));
}

static inline bool has(const struct bench *bench, int keyspace, const char *key)
{
    return filter_contains(bench->generation->filters[keyspace], hash_of(bench, key));
}

static inline void must_hear(struct bench *bench, const char *what)
{
    assert_string_equal(bench->heard, what);
    if (what[0])
        assert_int_equal(bench->xid, stream.committed);
    bench->heard[0] = '\0';
}

/* ---- what is in the filters ---- */

static inline size_t keys_in(const struct bench *bench, int keyspace)
{
    return filter_stats(bench->generation->filters[keyspace]).keys;
}

static inline size_t removals_held(const struct bench *bench)
{
    return follower_counts(bench->follower).removals;
}

/* A probe has seen all that was committed so far, and nothing altered. */
static inline void vouch(struct bench *bench)
{
    follower_vouch(bench->follower, "1000000:1000000:");
    while (removals_held(bench))
        uv_run(&bench->loop, UV_RUN_NOWAIT);
    bench->crowded = false;
}

/* What the loop still has to do. */
static inline void run_until_released(struct bench *bench)
{
    while (stream.paused) {
        uv_run(&bench->loop, UV_RUN_NOWAIT);
        if (bench->crowded)
            vouch(bench);
    }
}

#endif
