/* What the tests of filters share: hashes that each run draws anew, filters of the kind under test,
 * and questions to them.
 *
 * Hashes come from filter_hash() under a seed that each run prints; NESTGUARD_TEST_SEED=n repeats
 * a run. */
#ifndef NESTGUARD_TEST_FILTER_BENCH_H
#define NESTGUARD_TEST_FILTER_BENCH_H

#include "filters/filter.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

static enum filter_kind kind; /* under test */
static uint64_t run_seed;
static uint64_t random_state;

static inline uint64_t hash_of(uint64_t number)
{
    struct filter_seed seed = {run_seed, ~run_seed};
    return filter_hash(&seed, &number, sizeof number);
}

static inline uint64_t random_below(uint64_t n)
{
    return hash_of(++random_state ^ UINT64_C(1) << 63) % n;
}

static inline struct filter *make_of(const struct filter_options *options)
{
    struct filter *filter = NULL;
    const char *error = NULL;
    int code = filter_create(&filter, options, &error);
    if (code)
        fail_msg("capacity %zu, rate %g: %s", options->capacity, options->false_positive_rate,
                 error);
    return filter;
}

static inline struct filter *make(size_t capacity, double rate)
{
    struct filter_options options = {
        .kind = kind, .capacity = capacity, .false_positive_rate = rate};
    return make_of(&options);
}

/* One that takes no more memory than it has from the start: so that each kind can be full. */
static inline struct filter *make_bounded(size_t capacity, double rate)
{
    struct filter_options options = {
        .kind = kind, .capacity = capacity, .false_positive_rate = rate};
    struct filter *filter = make_of(&options);
    options.max_bytes = filter_stats(filter).bytes;
    filter_destroy(filter);
    return make_of(&options);
}

static inline void insert_range(struct filter *filter, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        assert_int_equal(filter_insert(filter, hash_of(i)), 0);
}

static inline void assert_range_is_in(const struct filter *filter, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (!filter_contains(filter, hash_of(i)))
            fail_msg("key %" PRIu64 " is lost (seed %" PRIu64 ")", i, run_seed);
}

/* Numbers from here on are never inserted. */
#define STRANGERS (UINT64_C(1) << 40)

static inline size_t count_false_positives(const struct filter *filter, size_t probes)
{
    size_t hits = 0;
    for (size_t i = 0; i < probes; i++)
        hits += filter_contains(filter, hash_of(STRANGERS + i));
    return hits;
}

/* Inserts numbers from `from` until there is no place; returns the one that found none. */
static inline uint64_t fill_up(struct filter *filter, uint64_t from)
{
    uint64_t i = from;
    while (filter_insert(filter, hash_of(i)) == 0)
        i++;
    return i;
}

/* Four standard deviations above what the bound allows. */
static inline double most_hits(double rate, size_t probes)
{
    double expected = rate * (double)probes;
    return expected + 4 * sqrt(expected) + 1;
}

/* The seed of this run: given, or the time. */
static inline void draw_seed(void)
{
    const char *given = getenv("NESTGUARD_TEST_SEED");
    run_seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("NESTGUARD_TEST_SEED=%" PRIu64 "\n", run_seed);
}

#endif
