/* What the tests of filters share: hashes that each run draws anew, filters of the kind under test,
 * and questions to them.
 *
 * Hashes come from filter_hash() under a seed that each run prints; NESTGUARD_TEST_SEED=n repeats
 * a run. */
#ifndef NESTGUARD_FAKES_FILTER_BENCH_H
#define NESTGUARD_FAKES_FILTER_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filters/filter.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

extern enum filter_kind kind; /* under test */

extern uint64_t run_seed;

extern uint64_t random_state;

uint64_t hash_of(uint64_t number);

uint64_t random_below(uint64_t n);

struct filter *make_of(const struct filter_options *options);

struct filter *make(size_t capacity, double rate);

/* One that takes no more memory than it has from the start: so that each kind can be full. */
struct filter *make_bounded(size_t capacity, double rate);

void insert_range(struct filter *filter, uint64_t from, uint64_t to);

void assert_range_is_in(const struct filter *filter, uint64_t from, uint64_t to);

/* Numbers from here on are never inserted. */
#define STRANGERS (UINT64_C(1) << 40)

size_t count_false_positives(const struct filter *filter, size_t probes);

/* Inserts numbers from `from` until there is no place; returns the one that found none. */
uint64_t fill_up(struct filter *filter, uint64_t from);

/* So many hits, or more, or fewer, of probes that each are one with the chance `rate` come less
 * than once in 1e12 times: a run of all tests of filters asserts some two hundred of these, so that
 * the chance of one that fails by chance is below 1e-9.
 *
 * The tail of the binomial distribution by Chernoff's bound ("A measure of asymptotic efficiency
 * ...", 1952):  P(hits >= h), likewise P(hits <= h), <= exp(-n D(h/n, p))  where D is the relative
 * entropy,  D(a, p) = a ln(a/p) + (1 - a) ln((1 - a)/(1 - p)).
 *
 * `rate` is that of the one array that is asked. Where only its mean over all arrays is known, it
 * must be raised, or lowered, by as much as one array may differ: SPREADS standard deviations. */
double most_hits(double rate, size_t probes);
double least_hits(double rate, size_t probes);
enum { SPREADS = 8 };

/* The standard deviation of a Bloom filter's rate among arrays, as a share of the rate: that of the
 * number of set bits, of which the rate is the power `hashes`. The variance of that number is
 * m (e^-c - (1 + c) e^-2c), c being bits thrown a place. */
double bloom_spread(double places, double keys, unsigned hashes);

/* The seed of this run: given, or the time. */
void draw_seed(void);

#endif
