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

/* Four standard deviations above what the bound allows. */
double most_hits(double rate, size_t probes);

/* The seed of this run: given, or the time. */
void draw_seed(void);

#endif
