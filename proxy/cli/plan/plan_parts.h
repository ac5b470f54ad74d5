/* The answers of `nestguard plan`, which print what they find. Those that return an int: 0, or 1
 * when something failed, which has been told. Numbers of keys are 1 or more; rates are shares, as
 * filter_rate_is_possible() allows them. They write to standard output, and belong to one thread.
 */
#ifndef NESTGUARD_PLAN_PARTS_H
#define NESTGUARD_PLAN_PARTS_H

#include "filters/filter.h"

/* Measured with so many keys at most; what is larger behaves the same, a little slower. */
#define PLAN_KEYS_RUN ((uint64_t)10000000)

/* What a Bloom filter needs by the formulas, and what it lets pass with other numbers of functions,
 * theory beside measurement. */
int plan_formulas(uint64_t keys, double rate);

/* Each kind of filter, and behind them each format of a published bitmap. Of what is planned the
 * capacity and the rate count; all kinds are tried. */
int plan_kinds(struct filter_options planned);
int plan_bitmaps(uint64_t keys, double rate);

/* The textbook's table for Bloom filters: false-positive rates by bits a key (m/n) and functions
 * (k). */
int plan_table(void);

/* What each keyspace of a configuration file takes, with the rows that the database has now, or
 * with `keys` of them unless it is 0; and with more. */
int plan_file(const char *file, uint64_t keys);

#endif
