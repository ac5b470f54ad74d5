/* What a cuckoo filter is made of: shared by its readers (cuckoo.c) and its writer
 * (cuckoo_writer.c), where the head comments say how it works. Private to filters/. */
#ifndef NESTGUARD_CUCKOO_TABLE_H
#define NESTGUARD_CUCKOO_TABLE_H

#include "filters/cuckoo/bucket.h"
#include "filters/cuckoo/stash.h"
#include "filters/cuckoo/surplus.h"
#include "filters/filter_kind.h"

#include <stdalign.h>

#define CACHE_LINE 64

__extension__ typedef unsigned __int128 uint128;

/* At the head of the mapping whose rest is the table. What only the writer needs, what readers need
 * and never changes, and what changes under the readers lie on different cache lines. */
struct cuckoo {
    struct filter base;
    struct bucket_table table;
    size_t capacity;
    size_t mapped; /* bytes */

    alignas(CACHE_LINE) _Atomic(uint64_t) version;
    struct stash stash;

    alignas(CACHE_LINE) _Atomic(size_t) keys; /* insertions less removals: copies count each */
    _Atomic(size_t) in_table;                 /* of them, in places of their own */
    _Atomic(size_t) surplus_bytes;
    struct surplus surplus;
    int refilled; /* the stash entry that was last tried for a place in the table */
};

/* Where an entry may be. */
struct spot {
    uint32_t fingerprint;
    uint64_t pair[2]; /* of buckets; may be the same twice */
};

static inline const struct cuckoo *cuckoo_const(const struct filter *filter)
{
    return (const struct cuckoo *)filter;
}

static inline struct cuckoo *cuckoo_of(struct filter *filter)
{
    return (struct cuckoo *)filter;
}

static inline const struct bucket_layout *cuckoo_layout(const struct cuckoo *c)
{
    return &bucket_layouts[c->table.width];
}

/* Hash to bucket and fingerprint */

/* Scales a 64-bit value to 0 .. n-1 (Lemire, "Fast random integer generation in an interval",
 * 2019); right for any n, also above 2^32. */
BUCKET_INLINE uint64_t cuckoo_scale(uint64_t value, uint64_t n)
{
    return (uint64_t)((uint128)value * n >> 64);
}

/* r(f). Neighbouring fingerprints must not give r at equal distances, or chains of moves would meet
 * the same buckets again and again; hence the exclusive or of both halves of the product. No secret
 * is needed: the fingerprints are secret. */
BUCKET_INLINE uint64_t cuckoo_spread(uint32_t fingerprint, uint64_t n)
{
    uint64_t x = fingerprint * UINT64_C(0x9e3779b97f4a7c15);
    return cuckoo_scale(x ^ x << 32, n);
}

BUCKET_INLINE uint64_t cuckoo_other(uint64_t bucket, uint32_t fingerprint, uint64_t n)
{
    uint64_t r = cuckoo_spread(fingerprint, n);
    return r >= bucket ? r - bucket : r + (n - bucket);
}

BUCKET_INLINE struct spot cuckoo_spot(const struct bucket_layout *layout,
                                      const struct bucket_table *table, uint64_t hash)
{
    struct spot spot = {.fingerprint = bucket_fingerprint(layout, hash)};
    spot.pair[0] = cuckoo_scale(hash, table->buckets);
    spot.pair[1] = cuckoo_other(spot.pair[0], spot.fingerprint, table->buckets);
    return spot;
}

BUCKET_INLINE struct spot cuckoo_prefetch_spot(const struct bucket_layout *layout,
                                               const struct bucket_table *table, uint64_t hash)
{
    struct spot spot = cuckoo_spot(layout, table, hash);
    bucket_prefetch(layout, table, spot.pair[0]);
    bucket_prefetch(layout, table, spot.pair[1]);
    return spot;
}

/* The most memory that the surplus may take. */
size_t cuckoo_surplus_limit(const struct cuckoo *c);

/* The writer's half of the filter's functions, as filter.h has them. */
int cuckoo_insert(struct filter *filter, uint64_t hash);
int cuckoo_remove(struct filter *filter, uint64_t hash);

#endif
