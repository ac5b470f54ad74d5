/* The plain Bloom filter of the textbook: m bits, n keys, k functions. */
#ifndef NESTGUARD_PLAN_BLOOM_H
#define NESTGUARD_PLAN_BLOOM_H

#include <stdint.h>

/* Share of absent keys that are taken for possible, 0 to 1: (1 - e^(-k n/m))^k, with m/n bits a
 * key, more than 0, and k functions. An approximation that is good but for very small filters (Bose
 * et al., "On the false-positive rate of Bloom filters", 2008). */
double plan_bloom_rate(double bits_a_key, unsigned functions);

/* Measured with so many keys, in several filters where they are few, and *asked other keys, more
 * where fewer are let pass; *wrong of these were. There is one key at least. 0 or a negative errno,
 * as of bloom_create_as(). */
int plan_bloom_measure(uint64_t keys, uint64_t bits, unsigned functions, uint64_t *wrong,
                       uint64_t *asked);

/* Keys that show as much as more would, and bounds for what is asked. */
enum { PLAN_BLOOM_KEYS = 20000, PLAN_BLOOM_ASKED_MIN = 200000, PLAN_BLOOM_ASKED_MAX = 1000000 };

#endif
