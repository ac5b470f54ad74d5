/* A counting Bloom filter (Fan, Cao, Almeida and Broder, "Summary Cache", 2000): counters of four
 * bits in the places of bits, so that what an insertion added a removal can take away again.
 *
 * In the textbook a counter that reaches 15 stays there for ever, or runs over and loses keys. Here
 * an entry that would take one past 15 goes to the stash with its whole hash, so that the filter is
 * an exact multiset until the stash is full. Random keys never come so far (a counter of 16 is seen
 * once in 10^16); copies of one key do.
 *
 * Readers beside the writer
 * -------------------------
 * Entries never move, and removals take from the stash first. So the counters lose their last copy
 * of an entry only when no other is left at all, and whoever is in the counters at some moment is
 * found there for as long as he is in. A lookup could miss only an entry that goes from the stash
 * while another copy of it arrives: from there the rules W2 and R of cuckoo.c protect it, applied
 * to the one store that takes away, the clearing of a place in the stash. */
#include "filters/bloom/bloom.h"

#include "filters/bloom/bloom_table.h"
#include "filters/cuckoo/stash.h"
#include "filters/pages.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>

#define CACHE_LINE 64

enum { COUNTER_BITS = 4, COUNTERS = 64 / COUNTER_BITS, COUNTER_MAX = 15 };

/* Attempts of a reader before it says "possibly". */
enum { LOOKS = 100 };

/* At the head of the mapping whose rest is the counters. */
struct counting {
    struct filter base;
    struct bloom_layout layout;
    _Atomic(uint64_t) *words;
    size_t capacity, limit;
    size_t mapped;

    alignas(CACHE_LINE) _Atomic(uint64_t) version; /* one more before each clearing in the stash */
    struct stash stash;

    alignas(CACHE_LINE) _Atomic(size_t) keys;
};

static const struct counting *counting_const(const struct filter *filter)
{
    return (const struct counting *)filter;
}

static struct counting *counting_of(struct filter *filter)
{
    return (struct counting *)filter;
}

static size_t keys_in(const struct counting *c)
{
    return atomic_load_explicit(&c->keys, memory_order_relaxed);
}

static int counting_create(struct filter **out, const struct filter_options *options,
                           const char **error)
{
    void *memory;
    size_t mapped, limit = bloom_limit(options->capacity);
    int code = bloom_check_capacity(limit, error);
    if (code)
        return code;
    struct bloom_layout layout = bloom_layout_for((double)limit, options->false_positive_rate);
    code = bloom_map(&memory, sizeof(struct counting), layout.places / COUNTERS, options->max_bytes,
                     &mapped, error);
    if (code)
        return code;
    struct counting *c = memory;
    c->base.ops = &counting_bloom_ops;
    c->layout = layout;
    c->words = (void *)(c + 1);
    c->capacity = options->capacity;
    c->limit = limit;
    c->mapped = mapped;
    *out = &c->base;
    return 0;
}

static void counting_destroy(struct filter *filter)
{
    pages_unmap(filter, counting_of(filter)->mapped);
}

/* Counters */

static unsigned shift_of(uint64_t place)
{
    return (unsigned)(place % COUNTERS * COUNTER_BITS);
}

static unsigned counter(const struct counting *c, uint64_t place)
{
    uint64_t word = atomic_load_explicit(&c->words[place / COUNTERS], memory_order_acquire);
    return (unsigned)(word >> shift_of(place)) & COUNTER_MAX;
}

/* Adds 1 or -1; the writer has seen that no neighbour is touched. */
static void count(const struct counting *c, uint64_t place, int by)
{
    _Atomic(uint64_t) *word = &c->words[place / COUNTERS];
    uint64_t value = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t one = UINT64_C(1) << shift_of(place);
    atomic_store_explicit(word, by > 0 ? value + one : value - one, memory_order_release);
}

/* The first `hashes` positions of an entry. */
static void count_all(const struct counting *c, uint64_t hash, unsigned hashes, int by)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < hashes; i++)
        count(c, bloom_walk_next(&walk, c->layout.places), by);
}

/* False, and everything as it was, when a counter is at its end. An entry may point at one counter
 * twice, so each is looked at when those before it have been raised. */
static bool put(const struct counting *c, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < c->layout.hashes; i++) {
        uint64_t place = bloom_walk_next(&walk, c->layout.places);
        if (counter(c, place) == COUNTER_MAX) {
            count_all(c, hash, i, -1);
            return false;
        }
        count(c, place, 1);
    }
    return true;
}

static bool counters_have(const struct counting *c, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < c->layout.hashes; i++)
        if (counter(c, bloom_walk_next(&walk, c->layout.places)) == 0)
            return false;
    return true;
}

/* Only after counters_have(): to lower some and raise them again when one turns out to be zero
 * would hide other entries for a moment. A counter that one entry points at twice can still be zero
 * the second time, if that entry was never inserted. */
static void take(const struct counting *c, uint64_t hash)
{
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < c->layout.hashes; i++) {
        uint64_t place = bloom_walk_next(&walk, c->layout.places);
        if (counter(c, place) > 0)
            count(c, place, -1);
    }
}

static void take_from_stash(struct counting *c, int number)
{
    uint64_t version = atomic_load_explicit(&c->version, memory_order_relaxed);
    atomic_store_explicit(&c->version, version + 1, memory_order_release);
    stash_clear(&c->stash, number);
}

static int counting_insert(struct filter *filter, uint64_t hash)
{
    struct counting *c = counting_of(filter);
    if (keys_in(c) >= c->limit || (!put(c, hash) && !stash_put(&c->stash, hash)))
        return -ENOSPC;
    atomic_store_explicit(&c->keys, keys_in(c) + 1, memory_order_relaxed);
    return 0;
}

static int counting_remove(struct filter *filter, uint64_t hash)
{
    struct counting *c = counting_of(filter);
    int number = stash_find(&c->stash, hash);
    if (number >= 0)
        take_from_stash(c, number);
    else if (counters_have(c, hash))
        take(c, hash);
    else
        return -ENOENT;
    atomic_store_explicit(&c->keys, keys_in(c) - 1, memory_order_relaxed);
    return 0;
}

static bool counting_contains(const struct filter *filter, uint64_t hash)
{
    const struct counting *c = counting_const(filter);
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t version = atomic_load_explicit(&c->version, memory_order_acquire);
        if (counters_have(c, hash) || stash_has(&c->stash, hash))
            return true;
        if (atomic_load_explicit(&c->version, memory_order_relaxed) == version)
            return false;
    }
    return true;
}

static void counting_prefetch(const struct filter *filter, uint64_t hash)
{
    const struct counting *c = counting_const(filter);
    struct bloom_walk walk = bloom_walk_begin(hash);
    for (unsigned i = 0; i < c->layout.hashes && i < BLOOM_PREFETCHED; i++)
        __builtin_prefetch(
            (const void *)&c->words[bloom_walk_next(&walk, c->layout.places) / COUNTERS]);
}

static struct filter_stats counting_stats(const struct filter *filter)
{
    const struct counting *c = counting_const(filter);
    size_t keys = keys_in(c);
    return (struct filter_stats){.keys = keys,
                                 .capacity = c->capacity,
                                 .slots = c->limit,
                                 .bytes = c->mapped,
                                 .stash_used = stash_count(&c->stash),
                                 .stash_size = STASH_SIZE,
                                 .expected_false_positive_rate =
                                     bloom_rate(&c->layout, (double)keys)};
}

static void counting_describe(const struct filter *filter, char *text, size_t size)
{
    const struct counting *c = counting_const(filter);
    snprintf(text, size, "%u hashes to %llu counters of %d bits", c->layout.hashes,
             (unsigned long long)c->layout.places, COUNTER_BITS);
}

static size_t counting_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct counting *c = counting_of(filter);
    parts[0] = (struct filter_part){&c->keys, sizeof c->keys};
    parts[1] = (struct filter_part){&c->stash, sizeof c->stash};
    parts[2] = (struct filter_part){c->words, (size_t)c->layout.places * COUNTER_BITS / 8};
    return 3;
}

const struct filter_ops counting_bloom_ops = {
    .name = "counting-bloom",
    .image_version = 1,
    .create = counting_create,
    .destroy = counting_destroy,
    .insert = counting_insert,
    .remove = counting_remove,
    .contains = counting_contains,
    .prefetch = counting_prefetch,
    .stats = counting_stats,
    .describe = counting_describe,
    .parts = counting_parts,
};
