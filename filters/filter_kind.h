/* What a kind of filter gives to filter.c. Private to filters/. */
#ifndef NESTGUARD_FILTER_KIND_H
#define NESTGUARD_FILTER_KIND_H

#include "filters/filter.h"

/* A piece of memory that belongs to what a filter holds. */
struct filter_part {
    void *at;
    size_t length;
};

enum { FILTER_PARTS_MAX = 64 };

/* The functions are those of filter.h; create() gets options whose ranges have been checked, and
 * sets `ops` in what it makes. A function that a comment names may be NULL. */
struct filter_ops {
    const char *name;
    unsigned image_version; /* of what parts() gives: raised whenever its meaning changes */
    int (*create)(struct filter **out, const struct filter_options *options, const char **error);
    void (*destroy)(struct filter *filter);
    int (*insert)(struct filter *filter, uint64_t hash);
    int (*remove)(struct filter *filter, uint64_t hash); /* NULL: this kind cannot */
    bool (*contains)(const struct filter *filter, uint64_t hash);
    void (*prefetch)(const struct filter *filter, uint64_t hash);
    /* NULL, both: prefetch() and contains(). The ask has its hash already. */
    void (*ask_begin)(const struct filter *filter, struct filter_ask *ask);
    bool (*ask_end)(const struct filter *filter, const struct filter_ask *ask);
    /* NULL: prefetch() ahead of contains() is as good. */
    void (*contains_batch)(const struct filter *filter, const uint64_t *hashes, size_t count,
                           bool *found);
    struct filter_stats (*stats)(const struct filter *filter);
    void (*describe)(const struct filter *filter, char *text, size_t size);

    /* All that insertions and removals change, for filter_image.c: written over the parts of a new
     * filter of the same options and as many stages, it makes that one the same filter. Any other
     * bytes there may make its answers wrong, but nothing else. Returns how many parts there are.
     */
    size_t (*parts)(struct filter *filter, struct filter_part parts[FILTER_PARTS_MAX]);

    /* Kinds that grow: how many stages there are; adds one, 0 or -ENOSPC. NULL: always one. */
    unsigned (*stages)(const struct filter *filter);
    int (*add_stage)(struct filter *filter);
};

/* Every kind's own struct begins with this one. filter_create() sets the options. */
struct filter {
    const struct filter_ops *ops;
    struct filter_options options;
};

#endif
