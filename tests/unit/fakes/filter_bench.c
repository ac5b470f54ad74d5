#include "fakes/filter_bench.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum filter_kind kind;

uint64_t run_seed;

uint64_t random_state;

uint64_t hash_of(uint64_t number)
{
    struct filter_seed seed = {run_seed, ~run_seed};
    return filter_hash(&seed, &number, sizeof number);
}

uint64_t random_below(uint64_t n)
{
    return hash_of(++random_state ^ UINT64_C(1) << 63) % n;
}

struct filter *make_of(const struct filter_options *options)
{
    struct filter *filter = NULL;
    const char *error = NULL;
    int code = filter_create(&filter, options, &error);
    if (code)
        fail_msg("capacity %zu, rate %g: %s", options->capacity, options->false_positive_rate,
                 error);
    return filter;
}

struct filter *make(size_t capacity, double rate)
{
    struct filter_options options = {
        .kind = kind, .capacity = capacity, .false_positive_rate = rate};
    return make_of(&options);
}

struct filter *make_bounded(size_t capacity, double rate)
{
    struct filter_options options = {
        .kind = kind, .capacity = capacity, .false_positive_rate = rate};
    struct filter *filter = make_of(&options);
    options.max_bytes = filter_stats(filter).bytes;
    filter_destroy(filter);
    return make_of(&options);
}

void insert_range(struct filter *filter, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        assert_int_equal(filter_insert(filter, hash_of(i)), 0);
}

void assert_range_is_in(const struct filter *filter, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        if (!filter_contains(filter, hash_of(i)))
            fail_msg("key %" PRIu64 " is lost (seed %" PRIu64 ")", i, run_seed);
}

size_t count_false_positives(const struct filter *filter, size_t probes)
{
    size_t hits = 0;
    for (size_t i = 0; i < probes; i++)
        hits += filter_contains(filter, hash_of(STRANGERS + i));
    return hits;
}

uint64_t fill_up(struct filter *filter, uint64_t from)
{
    uint64_t i = from;
    while (filter_insert(filter, hash_of(i)) == 0)
        i++;
    return i;
}

/* x ln(x/y), which is 0 at 0. */
static double term(double x, double y)
{
    return x > 0 ? x * log(x / y) : 0;
}

static bool is_incredible(double hits, double rate, double probes)
{
    double share = hits / probes;
    return probes * (term(share, rate) + term(1 - share, 1 - rate)) > 12 * log(10);
}

double most_hits(double rate, size_t probes)
{
    double n = (double)probes, hits = ceil(rate * n);
    if (rate >= 1)
        return n;
    while (hits < n && !is_incredible(hits + 1, rate, n))
        hits++;
    return hits;
}

double least_hits(double rate, size_t probes)
{
    double n = (double)probes, hits = floor(rate * n);
    while (hits > 0 && !is_incredible(hits - 1, rate, n))
        hits--;
    return hits;
}

double bloom_spread(double places, double keys, unsigned hashes)
{
    double c = keys * hashes / places;
    double variance = (exp(-c) - (1 + c) * exp(-2 * c)) / places;
    return hashes * sqrt(variance) / -expm1(-c);
}

void draw_seed(void)
{
    const char *given = getenv("NESTGUARD_TEST_SEED");
    run_seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    print_message("NESTGUARD_TEST_SEED=%" PRIu64 "\n", run_seed);
}
