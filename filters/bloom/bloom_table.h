/* What the Bloom filters have in common: how large their array is, and where a hash points in it.
 * Private to filters/. */
#ifndef NESTGUARD_BLOOM_TABLE_H
#define NESTGUARD_BLOOM_TABLE_H

#include "filters/filter_kind.h"

#include <stdatomic.h>

__extension__ typedef unsigned __int128 bloom_product;

/* Below so many keys the figures of the textbook become inexact, and memory is not the question. */
enum { BLOOM_KEYS_MIN = 64, BLOOM_HASHES_MAX = 64 };

/* Positions of a hash that are worth asking for ahead: an absent key is decided by two of them on
 * average. */
enum { BLOOM_PREFETCHED = 4 };

struct bloom_layout {
    uint64_t places; /* m: bits or counters, a multiple of 64 */
    unsigned hashes; /* k */
};

/* The smallest array for this many keys at this rate. */
struct bloom_layout bloom_layout_for(double keys, double rate);

/* (1 - e^(-kn/m))^k, and a little more: the share of set bits varies from one array to the next,
 * and its k-th power is larger on average than the k-th power of its average (Bose et al., "On the
 * false-positive rate of Bloom filters", 2008). */
double bloom_rate(const struct bloom_layout *layout, double keys);

/* The mean of fill^k over arrays of m places into which so many bits were thrown at random. */
double bloom_fill_power(double places, double thrown, unsigned hashes);

/* Keys that a filter made for `capacity` takes. */
static inline size_t bloom_limit(size_t capacity)
{
    return capacity < BLOOM_KEYS_MIN ? BLOOM_KEYS_MIN : capacity;
}

/* Maps `head` bytes and so many 64-bit words behind them, zeroed; *mapped is their size in whole
 * pages. Returns as filter_create() does, whose options.max_bytes it keeps. */
int bloom_map(void **out, size_t head, uint64_t words, size_t max_bytes, size_t *mapped,
              const char **error);

/* Whether a filter for so many keys can be thought of. */
int bloom_check_capacity(size_t capacity, const char **error);

/* Where a hash points: double hashing, position i is h1 + i * h2 (Kirsch and Mitzenmacher, "Less
 * hashing, same performance: building a better Bloom filter", 2006), with a third term,
 *
 *        position i = h1 + i * h2 + i * (i - 1) / 2 * h3        (triple hashing: Dillinger and
 *                                                                Manolios, FMCAD 2004)
 *
 * modulo 2^64, scaled to the array. Two terms are the same in the limit of large arrays only: an h2
 * near zero, or near a simple fraction of 2^64, points at the same few bits again and again. That
 * lets pass some 12/(km) of all absent keys, 5e-7 with 30,000 keys where 1e-7 is wanted. */
struct bloom_walk {
    uint64_t at, step, turn;
};

/* Stafford's variant 13 of the finaliser of splitmix64: hashes are secret, so it need not be. */
static inline uint64_t bloom_mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline struct bloom_walk bloom_walk_begin(uint64_t hash)
{
    uint64_t step = bloom_mix(hash);
    return (struct bloom_walk){
        .at = hash, .step = step, .turn = bloom_mix(hash + UINT64_C(0x9e3779b97f4a7c15))};
}

/* Scales a 64-bit value to 0 .. n-1 (Lemire, 2019). */
static inline uint64_t bloom_scale(uint64_t value, uint64_t n)
{
    return (uint64_t)((bloom_product)value * n >> 64);
}

static inline uint64_t bloom_walk_next(struct bloom_walk *walk, uint64_t places)
{
    uint64_t place = bloom_scale(walk->at, places);
    walk->at += walk->step;
    walk->step += walk->turn;
    return place;
}

/* An array of bits. One writer needs no atomic "or"; that readers never see a bit fall needs no
 * order between stores. */
struct bloom_bits {
    struct bloom_layout layout;
    _Atomic(uint64_t) *words;
};

static inline bool bloom_bit(const _Atomic(uint64_t) *words, uint64_t place)
{
    return atomic_load_explicit(&words[place / 64], memory_order_relaxed) >> place % 64 & 1;
}

static inline void bloom_set_bit(_Atomic(uint64_t) *words, uint64_t place)
{
    uint64_t word = atomic_load_explicit(&words[place / 64], memory_order_relaxed);
    atomic_store_explicit(&words[place / 64], word | UINT64_C(1) << place % 64,
                          memory_order_relaxed);
}

/* Set by one thread at a time; asked by any, also meanwhile: a hash whose setting has returned is
 * found. */
void bloom_bits_set(const struct bloom_bits *bits, uint64_t hash);
bool bloom_bits_have(const struct bloom_bits *bits, uint64_t hash);

void bloom_bits_prefetch(const struct bloom_bits *bits, uint64_t hash);

#endif
