/* Figures as people read them, and lines of the table of filters. */
#ifndef NESTGUARD_PLAN_PRINT_H
#define NESTGUARD_PLAN_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* The memory of as many keys as are planned, which may be more than were run. */
struct plan_memory {
    double bytes;
    bool estimated; /* by proportion, which a ~ says */
};

enum { PLAN_FIGURE = 32 }; /* room for any of these texts */

/* "21.1 MiB", or "~21.1 MiB" */
void plan_memory_text(const struct plan_memory *memory, char text[PLAN_FIGURE]);

/* "10,000,000" */
void plan_count_text(uint64_t count, char text[PLAN_FIGURE]);

/* "0.00012", the share of `asked`, of which there is one at least, that was wrong. Of none that was
 * wrong only this is sure: "<1e-06". */
void plan_measured_text(uint64_t wrong, uint64_t asked, char text[PLAN_FIGURE]);

struct plan_line {
    const char *name, *layout;   /* for people, as filter_describe() has it */
    double bits_a_key, expected; /* expected: the rate by the formula, a share */
    struct plan_memory memory;
    uint64_t asked, wrong;                   /* absent keys, and those taken for possible */
    double insert_ns, absent_ns, present_ns; /* nanoseconds a key */
    bool removes;                            /* it can forget a key */
};

/* The names of the columns; `what` and `layout` are those of the first and the last. A line wipes
 * the progress out that was shown meanwhile. */
void plan_print_head(const char *what, const char *layout);
void plan_print_line(const struct plan_line *line);

#endif
