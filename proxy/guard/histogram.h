/* How long things took: counted by bounds that are the same for all, so that histograms add up. One
 * thread writes, any reads, as with counters.
 */
#ifndef NESTGUARD_HISTOGRAM_H
#define NESTGUARD_HISTOGRAM_H

#include "guard/counters.h"

enum { HISTOGRAM_BOUNDS = 22 };

/* In seconds, rising: from a microsecond to ten seconds. */
extern const double histogram_bounds[HISTOGRAM_BOUNDS];

/* Zeroed: nothing was counted. The last bucket is of what took longer than the last bound. */
struct histogram {
    counter buckets[HISTOGRAM_BOUNDS + 1];
    counter nanoseconds; /* all together */
};

/* As read: plain values, for anybody. */
struct durations {
    uint64_t buckets[HISTOGRAM_BOUNDS + 1]; /* how many each; not how many up to its bound */
    uint64_t nanoseconds;
};

/* `count` of them took that long each. Only the thread that owns the histogram. */
void histogram_add(struct histogram *histogram, uint64_t nanoseconds, uint64_t count);

/* Adds what was counted so far to `to`. */
void histogram_read(const struct histogram *histogram, struct durations *to);

/* How many there were, and how long they took all together. */
uint64_t durations_count(const struct durations *durations);
double durations_seconds(const struct durations *durations);

#endif
