/* What a kind of filter gives to filter.c. Private to filters/. */
#ifndef NESTGUARD_FILTER_KIND_H
#define NESTGUARD_FILTER_KIND_H

#include "filter.h"

/* The functions are those of filter.h; create() gets options whose ranges have been checked, and
 * sets `ops` in what it makes. */
struct filter_ops {
    const char *name;
    int (*create)(struct filter **out, const struct filter_options *options, const char **error);
    void (*destroy)(struct filter *filter);
    int (*insert)(struct filter *filter, uint64_t hash);
    int (*remove)(struct filter *filter, uint64_t hash);
    bool (*contains)(const struct filter *filter, uint64_t hash);
    void (*prefetch)(const struct filter *filter, uint64_t hash);
    void (*contains_batch)(const struct filter *filter, const uint64_t *hashes, size_t count,
                           bool *found);
    struct filter_stats (*stats)(const struct filter *filter);
};

/* Every kind's own struct begins with this one. */
struct filter {
    const struct filter_ops *ops;
};

#endif
