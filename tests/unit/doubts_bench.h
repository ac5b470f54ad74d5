/* One test's doubts, and what became of them. Memory that goes too early or never, AddressSanitizer
 * finds. */
#ifndef NESTGUARD_TEST_DOUBTS_BENCH_H
#define NESTGUARD_TEST_DOUBTS_BENCH_H

#include "follow/doubts.h"

#include "generation_bench.h"

struct bench {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct unseen *unseen;
    struct doubts *doubts;
};

/* What became of one doubt. */
struct end {
    int calls;
    int keyspace;
    char key[100];
    enum doubt_outcome outcome;
    char other[100];
};

static inline void bench_init(struct bench *bench, unsigned max_at_once)
{
    *bench = (struct bench){.config = config_from_text(bench_text), .generation = generation_of(1)};
    bench->rows.config = bench->config;
    bench->unseen = unseen_create(&(struct unseen_options){.max_remembered = 100});
    bench->doubts = doubts_create(&(struct doubts_options){
        .rows = &bench->rows, .max_at_once = max_at_once, .unseen = bench->unseen});
    fake_pool.params = 1;
    now_ms = 1000;
}

/* Nobody else holds the generation any more. */
static inline void bench_finish(struct bench *bench)
{
    doubts_destroy(bench->doubts);
    unseen_destroy(bench->unseen);
    assert_int_equal(bench->generation->references, 1);
    generation_release(bench->generation);
    while (fake_pool.count)
        fake_outcome(PG_DOWN);
    config_destroy(bench->config);
}

static inline void on_end(void *arg, struct key key, enum doubt_outcome outcome, struct span other)
{
    struct end *end = arg;
    end->calls++;
    assert_int_equal(outcome == DOUBT_OTHER_SPELLING, other.at != NULL);
    snprintf(end->other, sizeof end->other, "%.*s", (int)other.length, other.at ? other.at : "");
    end->keyspace = key.keyspace;
    end->outcome = outcome;
    assert_true(key.text.length < sizeof end->key);
    memcpy(end->key, key.text.at, key.text.length);
    end->key[key.text.length] = '\0';
}

static inline bool try_to_doubt(struct bench *bench, struct end *end, const char *key)
{
    char own[100];
    *end = (struct end){0};
    snprintf(own, sizeof own, "%s", key);
    bool taken = doubts_add(bench->doubts, bench->generation,
                            key_make(ITEMS, (struct span){own, strlen(key)}), on_end, end);
    memset(own, 'x', sizeof own); /* the caller's bytes need not outlive the call */
    assert_int_equal(end->calls, 0);
    return taken;
}

static inline void doubt(struct bench *bench, struct end *end, const char *key)
{
    assert_true(try_to_doubt(bench, end, key));
}

static inline void must_end(const struct end *end, enum doubt_outcome outcome)
{
    assert_int_equal(end->calls, 1);
    assert_int_equal(end->outcome, outcome);
}

/* A little later everything that was committed by now is known. */
static inline void all_is_known(struct bench *bench)
{
    now_ms++;
    doubts_known(bench->doubts, bench->generation, now_ms);
}

static inline void changed(struct bench *bench, const char *key)
{
    doubts_changed(bench->doubts, bench->generation, key_make(ITEMS, span_of(key)));
}

#endif
