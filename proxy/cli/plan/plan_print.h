/* Figures as people read them, and lines of the table of filters. */
#ifndef NESTGUARD_PLAN_PRINT_H
#define NESTGUARD_PLAN_PRINT_H

#include <stdbool.h>
#include <stdint.h>

/* The memory of as many keys as are planned, which may be more than were run. */
struct plan_memory {
    double bytes;
    bool estimated;
};

enum { PLAN_FIGURE = 32 };

/* "21.1 MiB", or "~21.1 MiB" */
void plan_memory_text(const struct plan_memory *memory, char text[PLAN_FIGURE]);

/* "10,000,000" */
void plan_count_text(uint64_t count, char text[PLAN_FIGURE]);

/* Few hits say little: then only what is sure. */
void plan_measured_text(uint64_t wrong, uint64_t asked, char text[PLAN_FIGURE]);

struct plan_line {
    const char *name, *layout;
    double bits_a_key, expected;
    struct plan_memory memory;
    uint64_t asked, wrong;
    double insert_ns, absent_ns, present_ns;
    bool removes;
};

void plan_print_head(const char *what, const char *layout);
void plan_print_line(const struct plan_line *line);

#endif
