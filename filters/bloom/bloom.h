/* The Bloom filters (Bloom, "Space/time trade-offs in hash coding with allowable errors", 1970).
 *
 * An array of m bits, all zero at first. An insertion sets the k bits that its hash points at; a
 * lookup says "possible" when all k bits of its hash are set. With n keys in, a bit is still zero
 * with probability e^(-kn/m), so an absent key is let pass with probability
 *
 *        (1 - e^(-kn/m))^k,        least at k = ln 2 * m/n, where half of the bits are set:
 *
 * m/n = 1.44 * log2(1/p) bits a key for a rate of p, which is 19.2 for the default of 1e-4.
 *
 *   kind            bits a key  removes  an absent key takes           when it is full
 *   bloom           19.2        no       2 cache lines on average      refuses: the rate would rise
 *   blocked-bloom   24          no       1 cache line                  refuses
 *   counting-bloom  77          yes      2 cache lines on average      refuses
 *   scalable-bloom  20.6        no       2 cache lines for each stage  adds one twice as large
 *
 * Readers need nothing beside one writer, as bits only ever change from 0 to 1; what the counting
 * filter does about its removals is in counting_bloom.c. Every kind takes as many keys as it was
 * made for, or some more in a very small one.
 */
#ifndef NESTGUARD_BLOOM_H
#define NESTGUARD_BLOOM_H

#include "filters/filter_kind.h"

extern const struct filter_ops bloom_ops;
extern const struct filter_ops blocked_bloom_ops;
extern const struct filter_ops counting_bloom_ops;
extern const struct filter_ops scalable_bloom_ops;

/* A plain Bloom filter of this many bits (rounded up to 64) and hashes a key, 1 to 64, instead of a
 * wanted rate: for showing what they do to the rate. It takes `keys` keys. Otherwise as
 * filter_create(). */
int bloom_create_as(struct filter **out, size_t keys, uint64_t bits, unsigned hashes,
                    const char **error);

#endif
