/* One test's checks, and what became of them. Memory that goes too early or never, AddressSanitizer
 * finds. */
#ifndef NESTGUARD_TEST_FN_CHECKS_BENCH_H
#define NESTGUARD_TEST_FN_CHECKS_BENCH_H

#include "follow/checks/fn_checks.h"

#include "generation_bench.h"

struct bench {
    struct config *config;
    struct rows rows;
    struct generation *generation;
    struct commit_visibility *visibility;
    struct fn_checks *fn_checks;
};

/* What became of one check. */
struct end {
    int calls;
    int keyspace;
    char key[100];
    enum fn_check_outcome outcome;
    char other[100];
};

static inline void bench_init(struct bench *bench, unsigned max_at_once)
{
    *bench = (struct bench){.config = config_from_text(bench_text), .generation = generation_of(1)};
    bench->rows.config = bench->config;
    bench->visibility = visibility_create(&(struct visibility_options){.max_remembered = 100});
    bench->fn_checks = fn_checks_create(&(struct fn_checks_options){
        .rows = &bench->rows, .max_at_once = max_at_once, .visibility = bench->visibility});
    fake_pool.params = 1;
    now_ms = 1000;
}

/* Nobody else holds the generation any more. */
static inline void bench_finish(struct bench *bench)
{
    fn_checks_destroy(bench->fn_checks);
    visibility_destroy(bench->visibility);
    assert_int_equal(bench->generation->references, 1);
    generation_release(bench->generation);
    while (fake_pool.count)
        fake_outcome(PG_DOWN);
    config_destroy(bench->config);
}

static inline void on_end(void *arg, struct key key, enum fn_check_outcome outcome,
                          struct span other)
{
    struct end *end = arg;
    end->calls++;
    assert_int_equal(outcome == FN_CHECK_OTHER_SPELLING, other.at != NULL);
    snprintf(end->other, sizeof end->other, "%.*s", (int)other.length, other.at ? other.at : "");
    end->keyspace = key.keyspace;
    end->outcome = outcome;
    assert_true(key.text.length < sizeof end->key);
    memcpy(end->key, key.text.at, key.text.length);
    end->key[key.text.length] = '\0';
}

static inline bool try_to_check(struct bench *bench, struct end *end, const char *key)
{
    char own[100];
    *end = (struct end){0};
    snprintf(own, sizeof own, "%s", key);
    bool taken = fn_checks_add(bench->fn_checks, bench->generation,
                               key_make(ITEMS, (struct span){own, strlen(key)}), on_end, end);
    memset(own, 'x', sizeof own); /* the caller's bytes need not outlive the call */
    assert_int_equal(end->calls, 0);
    return taken;
}

static inline void fn_check(struct bench *bench, struct end *end, const char *key)
{
    assert_true(try_to_check(bench, end, key));
}

static inline void must_end(const struct end *end, enum fn_check_outcome outcome)
{
    assert_int_equal(end->calls, 1);
    assert_int_equal(end->outcome, outcome);
}

/* A little later everything that was committed by now is known. */
static inline void all_is_known(struct bench *bench)
{
    now_ms++;
    fn_checks_known(bench->fn_checks, bench->generation, now_ms);
}

static inline void changed(struct bench *bench, const char *key)
{
    fn_checks_changed(bench->fn_checks, bench->generation, key_make(ITEMS, span_of(key)));
}

#endif
