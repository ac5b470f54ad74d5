/* The part of filter.h that every kind of filter does its own way: checks what was asked for and
 * passes each call on to the kind. */
#include "filters/filter.h"

#include "filters/bloom/bloom.h"
#include "filters/cuckoo/cuckoo.h"
#include "filters/filter_kind.h"

#include <errno.h>

static const struct filter_ops *const kinds[] = {
    [FILTER_CUCKOO] = &cuckoo_ops,
    [FILTER_BLOOM] = &bloom_ops,
    [FILTER_BLOCKED_BLOOM] = &blocked_bloom_ops,
    [FILTER_COUNTING_BLOOM] = &counting_bloom_ops,
    [FILTER_SCALABLE_BLOOM] = &scalable_bloom_ops,
};

/* Prefetches under way while one of a batch is inserted. */
#define INSERTS_AHEAD 64

/* The same for lookups; each may ask for several cache lines. */
#define LOOKUPS_AHEAD 24

#define KINDS (sizeof kinds / sizeof kinds[0])

static bool is_kind(enum filter_kind kind)
{
    return (size_t)kind < KINDS;
}

const char *filter_kind_name(enum filter_kind kind)
{
    return is_kind(kind) ? kinds[kind]->name : NULL;
}

bool filter_can_remove(enum filter_kind kind)
{
    return is_kind(kind) && kinds[kind]->remove;
}

/* Written so that a rate that is not a number is out of range. */
bool filter_rate_is_possible(double rate)
{
    return rate >= 1e-7 && rate <= 0.03;
}

/* The options are set when the filter is there: what a kind needs of them while it makes one, it
 * takes from the parameter. */
int filter_create(struct filter **out, const struct filter_options *options, const char **error)
{
    *out = NULL;
    if (!is_kind(options->kind)) {
        *error = "there is no such kind of filter";
        return -EINVAL;
    }
    if (!filter_rate_is_possible(options->false_positive_rate)) {
        *error = "the false-positive rate must be between 0.0000001 and 0.03";
        return -EINVAL;
    }
    int code = kinds[options->kind]->create(out, options, error);
    if (!code)
        (*out)->options = *options;
    return code;
}

void filter_destroy(struct filter *filter)
{
    if (filter)
        filter->ops->destroy(filter);
}

int filter_insert(struct filter *filter, uint64_t hash)
{
    return filter->ops->insert(filter, hash);
}

int filter_insert_batch(struct filter *filter, const uint64_t *hashes, size_t count,
                        size_t *inserted)
{
    int code = 0;
    size_t i;
    for (i = 0; i < count && i < INSERTS_AHEAD; i++)
        filter->ops->prefetch(filter, hashes[i]);
    for (i = 0; i < count && !code; i++) {
        if (count - i > INSERTS_AHEAD)
            filter->ops->prefetch(filter, hashes[i + INSERTS_AHEAD]);
        code = filter->ops->insert(filter, hashes[i]);
    }
    if (inserted)
        *inserted = code ? i - 1 : i; /* the one that is refused is counted by then */
    return code;
}

int filter_remove(struct filter *filter, uint64_t hash)
{
    return filter->ops->remove ? filter->ops->remove(filter, hash) : -ENOTSUP;
}

bool filter_contains(const struct filter *filter, uint64_t hash)
{
    return filter->ops->contains(filter, hash);
}

void filter_prefetch(const struct filter *filter, uint64_t hash)
{
    filter->ops->prefetch(filter, hash);
}

void filter_ask_begin(const struct filter *filter, uint64_t hash, struct filter_ask *ask)
{
    ask->hash = hash;
    if (filter->ops->ask_begin)
        filter->ops->ask_begin(filter, ask);
    else
        filter->ops->prefetch(filter, hash);
}

bool filter_ask_end(const struct filter *filter, const struct filter_ask *ask)
{
    if (filter->ops->ask_end)
        return filter->ops->ask_end(filter, ask);
    return filter->ops->contains(filter, ask->hash);
}

/* For kinds that have nothing better. */
static void ask_each(const struct filter *filter, const uint64_t *hashes, size_t count, bool *found)
{
    for (size_t i = 0; i < count && i < LOOKUPS_AHEAD; i++)
        filter->ops->prefetch(filter, hashes[i]);
    for (size_t i = 0; i < count; i++) {
        if (count - i > LOOKUPS_AHEAD)
            filter->ops->prefetch(filter, hashes[i + LOOKUPS_AHEAD]);
        found[i] = filter->ops->contains(filter, hashes[i]);
    }
}

void filter_contains_batch(const struct filter *filter, const uint64_t *hashes, size_t count,
                           bool *found)
{
    if (filter->ops->contains_batch)
        filter->ops->contains_batch(filter, hashes, count, found);
    else
        ask_each(filter, hashes, count, found);
}

struct filter_stats filter_stats(const struct filter *filter)
{
    return filter->ops->stats(filter);
}

enum filter_kind filter_kind_of(const struct filter *filter)
{
    return filter->options.kind;
}

void filter_describe(const struct filter *filter, char *text, size_t size)
{
    filter->ops->describe(filter, text, size);
}
