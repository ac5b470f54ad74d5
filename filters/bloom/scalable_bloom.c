/* A scalable Bloom filter (Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom Filters",
 * Information Processing Letters, 2007): when a stage is full, one twice as large is added, and
 * lookups ask all stages. Each stage gets half of the rate of the one before:
 *
 *        stage            0       1       2       3    ...
 *        takes keys       n       2n      4n      8n
 *        at a rate of     p/2     p/4     p/8     p/16      together less than p, however many
 *
 * The authors tighten by 0.8 to 0.9, for filters that begin small and grow far. Here the number of
 * keys is known at the start but for what comes later: few stages will be needed, and the first one
 * takes least when its share of the rate is largest. It costs 1.44 bits a key more than a plain
 * Bloom filter, a second stage as much again.
 *
 * A reader sees a stage when its number is counted in, which is after it was made and before
 * anything is in it. */
#include "filters/bloom/bloom.h"

#include "filters/bloom/bloom_table.h"
#include "filters/pages.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

/* More than twice as large each, this many would not fit into any machine. */
enum { STAGES_MAX = 32 };

struct stage {
    struct bloom_bits bits;
    size_t limit;  /* keys it takes */
    size_t mapped; /* bytes */
    _Atomic(size_t) keys;
};

struct scalable {
    struct filter base;
    size_t capacity, first_limit;
    double rate;
    size_t mapped; /* this struct's bytes, without the stages */
    _Atomic(unsigned) count;
    struct stage stages[STAGES_MAX];
};

_Static_assert(2 * (int)STAGES_MAX <= (int)FILTER_PARTS_MAX, "two parts a stage");

static const struct scalable *scalable_const(const struct filter *filter)
{
    return (const struct scalable *)filter;
}

static struct scalable *scalable_of(struct filter *filter)
{
    return (struct scalable *)filter;
}

static unsigned count_of(const struct scalable *s)
{
    return atomic_load_explicit(&s->count, memory_order_acquire);
}

static size_t keys_of(const struct stage *stage)
{
    return atomic_load_explicit(&stage->keys, memory_order_relaxed);
}

static size_t bytes_of(const struct scalable *s)
{
    size_t bytes = s->mapped;
    for (unsigned i = 0; i < count_of(s); i++)
        bytes += s->stages[i].mapped;
    return bytes;
}

/* What is left of a bound on all memory, for bloom_map(), to which 0 means no bound and 1 nothing.
 */
static size_t room(const struct scalable *s, size_t max_bytes)
{
    size_t bytes = bytes_of(s);
    if (max_bytes == 0)
        return 0;
    return bytes < max_bytes ? max_bytes - bytes : 1;
}

static int grow(struct scalable *s, size_t max_bytes, const char **error)
{
    void *memory;
    unsigned number = count_of(s);
    struct stage *stage = &s->stages[number];
    int code = number == STAGES_MAX ? -EINVAL : 0;
    if (!code)
        code = bloom_check_capacity(s->first_limit << number, error);
    if (code)
        return code;
    stage->limit = s->first_limit << number;
    stage->bits.layout = bloom_layout_for((double)stage->limit, ldexp(s->rate, -(int)number - 1));
    code = bloom_map(&memory, 0, stage->bits.layout.places / 64, room(s, max_bytes), &stage->mapped,
                     error);
    if (code)
        return code;
    stage->bits.words = memory;
    atomic_store_explicit(&s->count, number + 1, memory_order_release);
    return 0;
}

static void scalable_destroy(struct filter *filter)
{
    struct scalable *s = scalable_of(filter);
    for (unsigned i = 0; i < count_of(s); i++)
        pages_unmap((void *)s->stages[i].bits.words, s->stages[i].mapped);
    pages_unmap(s, s->mapped);
}

static int scalable_create(struct filter **out, const struct filter_options *options,
                           const char **error)
{
    void *memory;
    size_t mapped;
    int code = bloom_map(&memory, sizeof(struct scalable), 0, options->max_bytes, &mapped, error);
    if (code)
        return code;
    struct scalable *s = memory;
    s->base.ops = &scalable_bloom_ops;
    s->capacity = options->capacity;
    s->first_limit = bloom_limit(options->capacity);
    s->rate = options->false_positive_rate;
    s->mapped = mapped;
    code = grow(s, options->max_bytes, error);
    if (code) {
        scalable_destroy(&s->base);
        return code;
    }
    *out = &s->base;
    return 0;
}

static int scalable_add_stage(struct filter *filter)
{
    const char *unused;
    return grow(scalable_of(filter), filter->options.max_bytes, &unused) ? -ENOSPC : 0;
}

static unsigned scalable_stages(const struct filter *filter)
{
    return count_of(scalable_const(filter));
}

static int scalable_insert(struct filter *filter, uint64_t hash)
{
    struct scalable *s = scalable_of(filter);
    const struct stage *last = &s->stages[count_of(s) - 1];
    if (keys_of(last) >= last->limit && scalable_add_stage(filter))
        return -ENOSPC;
    struct stage *stage = &s->stages[count_of(s) - 1];
    bloom_bits_set(&stage->bits, hash);
    atomic_store_explicit(&stage->keys, keys_of(stage) + 1, memory_order_relaxed);
    return 0;
}

/* The last stage first: it may hold as many keys as all the others. */
static bool scalable_contains(const struct filter *filter, uint64_t hash)
{
    const struct scalable *s = scalable_const(filter);
    for (unsigned i = count_of(s); i > 0; i--)
        if (bloom_bits_have(&s->stages[i - 1].bits, hash))
            return true;
    return false;
}

static void scalable_prefetch(const struct filter *filter, uint64_t hash)
{
    const struct scalable *s = scalable_const(filter);
    for (unsigned i = count_of(s); i > 0; i--)
        bloom_bits_prefetch(&s->stages[i - 1].bits, hash);
}

static struct filter_stats scalable_stats(const struct filter *filter)
{
    const struct scalable *s = scalable_const(filter);
    struct filter_stats stats = {.capacity = s->capacity, .bytes = bytes_of(s)};
    double rejected = 1; /* share of absent keys */
    for (unsigned i = 0; i < count_of(s); i++) {
        const struct stage *stage = &s->stages[i];
        stats.keys += keys_of(stage);
        stats.slots += stage->limit;
        rejected *= 1 - bloom_rate(&stage->bits.layout, (double)keys_of(stage));
    }
    stats.expected_false_positive_rate = 1 - rejected;
    return stats;
}

static void scalable_describe(const struct filter *filter, char *text, size_t size)
{
    const struct scalable *s = scalable_const(filter);
    unsigned count = count_of(s);
    const struct bloom_layout *last = &s->stages[count - 1].bits.layout;
    snprintf(text, size, "%u stage%s, the last of %u hashes to %llu bits", count,
             count == 1 ? "" : "s", last->hashes, (unsigned long long)last->places);
}

static size_t scalable_parts(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX])
{
    struct scalable *s = scalable_of(filter);
    unsigned count = count_of(s);
    for (unsigned i = 0; i < count; i++) {
        struct stage *stage = &s->stages[i];
        size_t bytes = (size_t)stage->bits.layout.places / 8;
        parts[2 * i] = (struct filter_part){&stage->keys, sizeof stage->keys};
        parts[2 * i + 1] = (struct filter_part){(void *)stage->bits.words, bytes};
    }
    return 2 * (size_t)count;
}

const struct filter_ops scalable_bloom_ops = {
    .name = "scalable-bloom",
    .image_version = 1,
    .create = scalable_create,
    .destroy = scalable_destroy,
    .insert = scalable_insert,
    .contains = scalable_contains,
    .prefetch = scalable_prefetch,
    .stats = scalable_stats,
    .describe = scalable_describe,
    .parts = scalable_parts,
    .stages = scalable_stages,
    .add_stage = scalable_add_stage,
};
