/* Durations by how often they occurred, exact to 1.6 %: each power of two is cut into 64 equal
 * parts, as in Tene's HdrHistogram. Fixed size, nothing allocated.
 */
#ifndef NESTGUARD_HISTOGRAM_H
#define NESTGUARD_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum {
    HISTOGRAM_PART_BITS = 6,
    HISTOGRAM_CELLS = (65 - HISTOGRAM_PART_BITS) << HISTOGRAM_PART_BITS
};

struct histogram { /* zero is empty */
    uint64_t count;
    uint64_t longest; /* ns */
    uint64_t cells[HISTOGRAM_CELLS];
};

/* Adds a duration that occurred so many times. */
void histogram_add(struct histogram *histogram, uint64_t ns, uint64_t times);

/* The duration in ns that this share (0 to 1) of all did not exceed; 0 when there are none. */
uint64_t histogram_at(const struct histogram *histogram, double share);

/* Prints "p50_us": .., "p99_us": .., "p999_us": .., "longest_us": .. in microseconds. */
void histogram_print(const struct histogram *histogram, FILE *out);

#endif
