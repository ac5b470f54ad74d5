/* One kind of filter, filled and asked at random. */
#ifndef NESTGUARD_PLAN_RUN_H
#define NESTGUARD_PLAN_RUN_H

#include "filters/filter.h"

struct plan_run {
    char layout[100];
    struct filter_stats stats; /* of the run, when full */
    uint64_t asked, wrong;     /* absent keys, and those of them that it called possible */
    double insert_ns, absent_ns, present_ns; /* a key, hashes made ahead, lookups in batches */
};

/* A filter of options->capacity random keys, and its answers for as many absent keys as the rate
 * needs to be seen. Keys are the first of plan_hashes(), absent ones those behind them. 0, or a
 * negative errno and *error, a static text; -EIO when it has lost a key. One thread at a time. */
int plan_run(const struct filter_options *options, struct plan_run *run, const char **error);

/* Random hashes number `first` and up, all of them different. */
void plan_hashes(uint64_t first, uint64_t *hashes, uint64_t count);

#endif
