/* What tests of purges share: a cache that answers when the test says so, and one test's purger. */
#ifndef NESTGUARD_TEST_PURGER_BENCH_H
#define NESTGUARD_TEST_PURGER_BENCH_H

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "cache/purger.h"
#include "fakes/redis.h"

enum { ITEMS, ORDERS, ODD, KEYSPACES };
enum { KEYS = FAKE_KEYS, WINDOW = 8192 };

/* ---- the cache ---- */

static inline void end(enum redis_outcome outcome)
{
    fake_redis_ends(outcome);
}

/* The oldest call is a SCAN from this cursor; it finds keys, separated by spaces. */
static inline void find(const char *from, const char *cursor, const char *keys)
{
    struct redis_bytes found[KEYS];
    struct redis_answer page = {.outcome = REDIS_DONE, .error = "", .page.cursor = cursor};
    char *text = xstrdup(keys), *rest = text, *key;
    assert_non_null(fake_redis.calls[0].cursor);
    assert_string_equal(fake_redis.calls[0].cursor, from);
    while ((key = strtok_r(rest, " ", &rest)))
        found[page.page.count++] = (struct redis_bytes){key, strlen(key)};
    page.page.keys = found;
    fake_redis_answer(&page);
    free(text);
}

/* ---- one test's purger ---- */

struct bench {
    uv_loop_t loop;
    struct keyspace keyspaces[KEYSPACES];
    struct config config;
    struct load_counters counters[KEYSPACES];
    struct vouched *vouched;
    struct purger *purger;
};

static inline struct purger *bench_purger(struct bench *bench, size_t max_owed)
{
    return purger_create(&(struct purger_options){.loop = &bench->loop,
                                                  .config = &bench->config,
                                                  .counters = bench->counters,
                                                  .vouched = bench->vouched,
                                                  .max_owed = max_owed});
}

static inline void bench_init(struct bench *bench, size_t max_owed)
{
    static const char *const templates[] = {"item:{id}", "order:{a}:{b}", "*[a-b]^?\\{{{id}}}-{n}"};
    static char *const names[] = {(char *)"items", (char *)"orders", (char *)"odd"};
    const char *error;
    *bench = (struct bench){.config = {.keyspace_count = KEYSPACES}};
    bench->config.keyspaces = bench->keyspaces;
    for (int i = 0; i < KEYSPACES; i++) {
        bench->keyspaces[i].name = names[i];
        assert_int_equal(key_template_parse(&bench->keyspaces[i].key, templates[i], &error), 0);
    }
    uv_loop_init(&bench->loop);
    fake_redis_reset();
    bench->vouched = vouched_create();
    vouched_settle(bench->vouched);
    bench->purger = bench_purger(bench, max_owed);
}

static inline void bench_finish(struct bench *bench)
{
    fake_redis.up = false;
    while (fake_redis.count)
        end(REDIS_DOWN);
    purger_destroy(bench->purger);
    vouched_destroy(bench->vouched);
    uv_run(&bench->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&bench->loop), 0);
    for (int i = 0; i < KEYSPACES; i++)
        key_template_finish(&bench->keyspaces[i].key);
}

#define COUNTED(bench, keyspace, name) ((int)counter_read(&(bench)->counters[keyspace].name))

static inline void purge(struct bench *bench, const char *key)
{
    purger_key(bench->purger, key_make(*key == 'i'   ? ITEMS
                                       : *key == 'o' ? ORDERS
                                                     : ODD,
                                       span_of(key)));
}

static inline void purge_numbers(struct bench *bench, int from, int to)
{
    char key[20];
    for (int i = from; i < to; i++) {
        snprintf(key, sizeof key, "item:%d", i);
        purge(bench, key);
    }
}

static inline void turn(struct bench *bench)
{
    uv_run(&bench->loop, UV_RUN_NOWAIT);
    uv_run(&bench->loop, UV_RUN_NOWAIT);
}

static inline void cache_is(struct bench *bench, bool up)
{
    fake_redis.up = up;
    purger_cache_is(bench->purger, up);
}

/* The call deletes exactly these, separated by spaces. */
static inline void must_delete(size_t call, const char *keys)
{
    char text[1000] = "";
    assert_true(call < fake_redis.count);
    assert_null(fake_redis.calls[call].cursor);
    for (size_t i = 0; i < fake_redis.calls[call].count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 fake_redis.calls[call].keys[i]);
    assert_string_equal(text, keys);
}

static inline void must_owe(struct bench *bench, size_t count)
{
    assert_int_equal(purger_owed(bench->purger), count);
}

static inline void must_owe_nothing(struct bench *bench)
{
    turn(bench);
    must_owe(bench, 0);
    assert_int_equal(fake_redis.count, 0);
}

/* Turns until there is a call; for how long that was to be waited, as seen after the first turn. */
static inline uint64_t wait_for_call(struct bench *bench)
{
    int wait = 0;
    while (!fake_redis.count) {
        int rest = uv_backend_timeout(&bench->loop);
        wait = rest > wait ? rest : wait;
        uv_run(&bench->loop, UV_RUN_ONCE);
    }
    return (uint64_t)wait;
}

/* A call comes `least` ms behind `since`, by the loop's clock, or later, and was to come within
 * `most`, whatever else the machine did. */
static inline void must_wait(struct bench *bench, uint64_t since, uint64_t least, uint64_t most)
{
    assert_in_range(wait_for_call(bench), 0, most);
    assert_true(uv_now(&bench->loop) - since >= least);
}

#endif
