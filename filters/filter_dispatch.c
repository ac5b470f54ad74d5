/* The part of filter.h that every kind of filter does its own way: checks what was asked for and
 * passes each call on to the kind. */
#include "filter.h"

#include "cuckoo.h"
#include "filter_kind.h"

#include <errno.h>

static const struct filter_ops *const kinds[] = {
    [FILTER_CUCKOO] = &cuckoo_ops,
};

#define KINDS (sizeof kinds / sizeof kinds[0])

static bool is_kind(enum filter_kind kind)
{
    return (size_t)kind < KINDS;
}

const char *filter_kind_name(enum filter_kind kind)
{
    return is_kind(kind) ? kinds[kind]->name : NULL;
}

/* Written so that a rate that is not a number is out of range. */
static bool rate_in_range(double rate)
{
    return rate >= 1e-7 && rate <= 0.03;
}

int filter_create(struct filter **out, const struct filter_options *options, const char **error)
{
    *out = NULL;
    if (!is_kind(options->kind)) {
        *error = "there is no such kind of filter";
        return -EINVAL;
    }
    if (!rate_in_range(options->false_positive_rate)) {
        *error = "the false-positive rate must be between 0.0000001 and 0.03";
        return -EINVAL;
    }
    return kinds[options->kind]->create(out, options, error);
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

int filter_remove(struct filter *filter, uint64_t hash)
{
    return filter->ops->remove(filter, hash);
}

bool filter_contains(const struct filter *filter, uint64_t hash)
{
    return filter->ops->contains(filter, hash);
}

void filter_prefetch(const struct filter *filter, uint64_t hash)
{
    filter->ops->prefetch(filter, hash);
}

void filter_contains_batch(const struct filter *filter, const uint64_t *hashes, size_t count,
                           bool *found)
{
    filter->ops->contains_batch(filter, hashes, count, found);
}

struct filter_stats filter_stats(const struct filter *filter)
{
    return filter->ops->stats(filter);
}
