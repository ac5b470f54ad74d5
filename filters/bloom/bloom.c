/* The plain Bloom filter; bloom.h explains it. The array is as large as the wanted rate needs with
 * `limit` keys in it, and one more is refused: so the rate that was asked for holds at any fill.
 * Keys are counted, not told apart: one that is inserted twice counts twice.
 */
#include "filters/bloom/bloom.h"

#include "filters/bloom/bloom_table.h"
#include "filters/pages.h"

#include <errno.h>
#include <stdalign.h>
#include <stdio.h>

#define CACHE_LINE 64

/* At the head of the mapping whose rest is the array. What the writer changes lies on a cache line
 * of its own. */
struct bloom {
    struct filter base;
    struct bloom_bits bits;
    size_t capacity, limit; /* keys: asked for, and taken at most */
    size_t mapped;          /* bytes */

    alignas(CACHE_LINE) _Atomic(size_t) keys;
};

static const struct bloom *bloom_const(const struct filter *filter)
{
    return (const struct bloom *)filter;
}

static struct bloom *bloom_of(struct filter *filter)
{
    return (struct bloom *)filter;
}

static size_t keys_in(const struct bloom *b)
{
    return atomic_load_explicit(&b->keys, memory_order_relaxed);
}

static int make(struct bloom **out, struct bloom_layout layout, size_t max_bytes,
                const char **error)
{
    void *memory;
    size_t mapped;
    int code = bloom_map(&memory, sizeof **out, layout.places / 64, max_bytes, &mapped, error);
    if (code)
        return code;
    *out = memory;
    (*out)->base.ops = &bloom_ops;
    (*out)->bits.layout = layout;
    (*out)->bits.words = (void *)(*out + 1);
    (*out)->mapped = mapped;
    return 0;
}

static int bloom_create(struct filter **out, const struct filter_options *options,
                        const char **error)
{
    struct bloom *b;
    size_t limit = bloom_limit(options->capacity);
    int code = bloom_check_capacity(limit, error);
    if (code)
        return code;
    struct bloom_layout layout = bloom_layout_for((double)limit, options->false_positive_rate);
    code = make(&b, layout, options->max_bytes, error);
    if (code)
        return code;
    b->capacity = options->capacity;
    b->limit = limit;
    *out = &b->base;
    return 0;
}

int bloom_create_as(struct filter **out, size_t keys, uint64_t bits, unsigned hashes,
                    const char **error)
{
    struct bloom *b;
    *out = NULL;
    if (bits == 0 || bits > UINT64_C(1) << 56 || hashes == 0 || hashes > BLOOM_HASHES_MAX) {
        *error = "a Bloom filter needs some bits and 1 to 64 hashes";
        return -EINVAL;
    }
    struct bloom_layout layout = {(bits + 63) / 64 * 64, hashes};
    int code = make(&b, layout, 0, error);
    if (code)
        return code;
    b->capacity = b->limit = keys;
    b->base.options = (struct filter_options){.kind = FILTER_BLOOM, .capacity = keys};
    *out = &b->base;
    return 0;
}

static void bloom_destroy(struct filter *filter)
{
    pages_unmap(filter, bloom_of(filter)->mapped);
}

static int bloom_insert(struct filter *filter, uint64_t hash)
{
    struct bloom *b = bloom_of(filter);
    size_t keys = keys_in(b);
    if (keys >= b->limit)
        return -ENOSPC;
    bloom_bits_set(&b->bits, hash);
    atomic_store_explicit(&b->keys, keys + 1, memory_order_relaxed);
    return 0;
}

static bool bloom_contains(const struct filter *filter, uint64_t hash)
{
    return bloom_bits_have(&bloom_const(filter)->bits, hash);
}

static void bloom_prefetch(const struct filter *filter, uint64_t hash)
{
    bloom_bits_prefetch(&bloom_const(filter)->bits, hash);
}

static struct filter_stats bloom_stats(const struct filter *filter)
{
    const struct bloom *b = bloom_const(filter);
    size_t keys = keys_in(b);
    return (struct filter_stats){.keys = keys,
                                 .capacity = b->capacity,
                                 .slots = b->limit,
                                 .bytes = b->mapped,
                                 .expected_false_positive_rate =
                                     bloom_rate(&b->bits.layout, (double)keys)};
}

static void bloom_describe(const struct filter *filter, char *text, size_t size)
{
    const struct bloom_layout *layout = &bloom_const(filter)->bits.layout;
    snprintf(text, size, "%u hashes to %llu bits", layout->hashes,
             (unsigned long long)layout->places);
}

static size_t bloom_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct bloom *b = bloom_of(filter);
    parts[0] = (struct filter_part){&b->keys, sizeof b->keys};
    parts[1] = (struct filter_part){b->bits.words, (size_t)b->bits.layout.places / 8};
    return 2;
}

const struct filter_ops bloom_ops = {
    .name = "bloom",
    .image_version = 1,
    .create = bloom_create,
    .destroy = bloom_destroy,
    .insert = bloom_insert,
    .contains = bloom_contains,
    .prefetch = bloom_prefetch,
    .stats = bloom_stats,
    .describe = bloom_describe,
    .parts = bloom_parts,
};
