/* A Bloom filter of blocks (Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
 * filters", 2007): a hash chooses one block of 512 bits, a cache line, and its k bits all lie in
 * there. A lookup so costs one line instead of two or, for a key that is in, k.
 *
 * The price: keys do not fall evenly into blocks, and the fuller ones let more pass than the
 * emptier ones save. With L keys a block on average, j of them in one with Poisson's probability,
 *
 *        rate = sum over j of  e^-L L^j / j!  *  E[(bits set by j keys / 512)^k]
 *
 * which makes the table larger than the plain one by a tenth at a rate of 1e-3, by a seventh at
 * 1e-4, and by half at 1e-7. */
#include "filters/bloom/bloom.h"

#include "filters/bloom/bloom_table.h"
#include "filters/pages.h"

#include <errno.h>
#include <math.h>
#include <stdalign.h>
#include <stdio.h>

enum { BLOCK_BITS = 512, BLOCK_WORDS = BLOCK_BITS / 64, INDEX_BITS = 9, INDICES_OF_WORD = 7 };

/* At the head of the mapping whose rest is the blocks; a block is a cache line and aligned as one.
 */
struct blocked {
    struct filter base;
    _Atomic(uint64_t) *words;
    uint64_t blocks;
    unsigned hashes;
    size_t capacity, limit;
    size_t mapped;

    alignas(BLOCK_BITS / 8) _Atomic(size_t) keys;
};

static const struct blocked *blocked_const(const struct filter *filter)
{
    return (const struct blocked *)filter;
}

static struct blocked *blocked_of(struct filter *filter)
{
    return (struct blocked *)filter;
}

/* The size */

/* The sum of the head comment, from the likeliest j to both sides until nothing is added. A load
 * that no filter is made for (only the count in a forged file comes so far) lets all pass. */
static double block_rate(double load, unsigned hashes)
{
    double middle = floor(load), sum = 0;
    if (load <= 0)
        return 0;
    if (load > BLOCK_BITS)
        return 1;
    int sign; /* lgamma() would put it into a variable of the process */
    double likeliest = exp(middle * log(load) - load - lgamma_r(middle + 1, &sign));
    double weight = likeliest;
    for (double j = middle; weight > 1e-16; weight *= load / ++j)
        sum += weight * bloom_fill_power(BLOCK_BITS, j * hashes, hashes);
    weight = likeliest * middle / load;
    for (double j = middle - 1; j > 0 && weight > 1e-16; weight *= j-- / load)
        sum += weight * bloom_fill_power(BLOCK_BITS, j * hashes, hashes);
    return sum;
}

/* The most keys a block, on average, at which the rate holds; by bisection from a load known to be
 * good. */
static double load_for(double rate, unsigned hashes, double good)
{
    double bad = BLOCK_BITS;
    while (bad - good > good / 4096) {
        double middle = (good + bad) / 2;
        if (block_rate(middle, hashes) <= rate)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* The number of hashes that allows most keys a block, found by trying. */
static double best_load(double rate, unsigned *hashes)
{
    double best = 1.0 / 16; /* good for any rate there is */
    *hashes = 8;
    for (unsigned k = 1; k <= BLOOM_HASHES_MAX / 2; k++) {
        if (block_rate(best * 1.001, k) > rate)
            continue;
        best = load_for(rate, k, best);
        *hashes = k;
    }
    return best;
}

static int blocked_create(struct filter **out, const struct filter_options *options,
                          const char **error)
{
    void *memory;
    unsigned hashes;
    size_t mapped, limit = bloom_limit(options->capacity);
    int code = bloom_check_capacity(limit, error);
    if (code)
        return code;
    double load = best_load(options->false_positive_rate, &hashes);
    uint64_t blocks = (uint64_t)((double)limit / load) + 1;
    code = bloom_map(&memory, sizeof(struct blocked), blocks * BLOCK_WORDS, options->max_bytes,
                     &mapped, error);
    if (code)
        return code;
    struct blocked *b = memory;
    b->base.ops = &blocked_bloom_ops;
    b->words = (void *)(b + 1);
    b->blocks = blocks;
    b->hashes = hashes;
    b->capacity = options->capacity;
    b->limit = limit;
    b->mapped = mapped;
    *out = &b->base;
    return 0;
}

static void blocked_destroy(struct filter *filter)
{
    pages_unmap(filter, blocked_of(filter)->mapped);
}

/* Inside a block two hashes of 9 bits would not do: keys of one block would have the same bits once
 * in 2^18 times. So each position is 9 fresh bits: seven from a word, which is then mixed anew. */
struct indices {
    uint64_t word, left;
    unsigned used;
};

static struct indices indices_begin(uint64_t hash)
{
    uint64_t word = bloom_mix(hash);
    return (struct indices){word, word, 0};
}

static uint64_t indices_next(struct indices *indices)
{
    if (indices->used++ == INDICES_OF_WORD) {
        indices->word = bloom_mix(indices->word + UINT64_C(0x9e3779b97f4a7c15));
        indices->left = indices->word;
        indices->used = 1;
    }
    uint64_t index = indices->left % BLOCK_BITS;
    indices->left >>= INDEX_BITS;
    return index;
}

static _Atomic(uint64_t) *block_of(const struct blocked *b, uint64_t hash)
{
    return b->words + bloom_scale(hash, b->blocks) * BLOCK_WORDS;
}

static int blocked_insert(struct filter *filter, uint64_t hash)
{
    struct blocked *b = blocked_of(filter);
    size_t keys = atomic_load_explicit(&b->keys, memory_order_relaxed);
    if (keys >= b->limit)
        return -ENOSPC;
    struct indices indices = indices_begin(hash);
    _Atomic(uint64_t) *block = block_of(b, hash);
    for (unsigned i = 0; i < b->hashes; i++)
        bloom_set_bit(block, indices_next(&indices));
    atomic_store_explicit(&b->keys, keys + 1, memory_order_relaxed);
    return 0;
}

static bool blocked_contains(const struct filter *filter, uint64_t hash)
{
    const struct blocked *b = blocked_const(filter);
    struct indices indices = indices_begin(hash);
    const _Atomic(uint64_t) *block = block_of(b, hash);
    for (unsigned i = 0; i < b->hashes; i++)
        if (!bloom_bit(block, indices_next(&indices)))
            return false;
    return true;
}

static void blocked_prefetch(const struct filter *filter, uint64_t hash)
{
    __builtin_prefetch((const void *)block_of(blocked_const(filter), hash));
}

static struct filter_stats blocked_stats(const struct filter *filter)
{
    const struct blocked *b = blocked_const(filter);
    size_t keys = atomic_load_explicit(&b->keys, memory_order_relaxed);
    return (struct filter_stats){.keys = keys,
                                 .capacity = b->capacity,
                                 .slots = b->limit,
                                 .bytes = b->mapped,
                                 .expected_false_positive_rate =
                                     block_rate((double)keys / (double)b->blocks, b->hashes)};
}

static void blocked_describe(const struct filter *filter, char *text, size_t size)
{
    const struct blocked *b = blocked_const(filter);
    snprintf(text, size, "%u hashes into one of %llu blocks of %d bits", b->hashes,
             (unsigned long long)b->blocks, BLOCK_BITS);
}

static size_t blocked_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct blocked *b = blocked_of(filter);
    parts[0] = (struct filter_part){&b->keys, sizeof b->keys};
    parts[1] = (struct filter_part){b->words, (size_t)b->blocks * BLOCK_BITS / 8};
    return 2;
}

const struct filter_ops blocked_bloom_ops = {
    .name = "blocked-bloom",
    .image_version = 1,
    .create = blocked_create,
    .destroy = blocked_destroy,
    .insert = blocked_insert,
    .contains = blocked_contains,
    .prefetch = blocked_prefetch,
    .stats = blocked_stats,
    .describe = blocked_describe,
    .parts = blocked_parts,
};
