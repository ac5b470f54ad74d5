/* The figures of one filter, and how they are printed. */
#ifndef NESTGUARD_BENCH_FILTER_FIGURES_H
#define NESTGUARD_BENCH_FILTER_FIGURES_H

#include <stddef.h>

enum figure {
    INSERT,
    BULK_INSERT,
    ABSENT,
    ABSENT_BATCH,
    PRESENT,
    PRESENT_BATCH,
    REMOVE,
    CHURN,
    FLOOR,
    FIGURES
};

struct result {
    const char *filter;
    size_t keys;
    double bits_per_key, rate;
    double ns[FIGURES]; /* NAN: the filter cannot do it */
    double wall_share;  /* the clock's time over the cycle counter's, where they differ most */
    size_t disagreed;   /* figures whose shortest runs differed by more than the tolerance */
};

void filter_figures_print_json(const struct result *result); /* an object a line */
void filter_figures_print_text(const struct result *result);

#endif
