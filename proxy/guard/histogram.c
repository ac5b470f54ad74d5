/* Three bounds a decade, so that a quantile is known to a factor of 2.5 at worst. Buckets count
 * what fell into each alone; sums up to a bound are made when somebody reads.
 */
#include "guard/histogram.h"

#include <stddef.h>

const double histogram_bounds[HISTOGRAM_BOUNDS] = {
    1e-6, 2.5e-6, 5e-6,  10e-6, 25e-6,  50e-6,  100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3,
    5e-3, 10e-3,  25e-3, 50e-3, 100e-3, 250e-3, 500e-3, 1,      2.5,    5,    10};

/* The first whose bound is not below it, as Prometheus' `le` has it. */
static size_t bucket_of(uint64_t nanoseconds)
{
    double seconds = (double)nanoseconds / 1e9;
    size_t low = 0, high = HISTOGRAM_BOUNDS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (seconds <= histogram_bounds[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

void histogram_add(struct histogram *histogram, uint64_t nanoseconds, uint64_t count)
{
    counter_add(&histogram->buckets[bucket_of(nanoseconds)], count);
    counter_add(&histogram->nanoseconds, nanoseconds * count);
}

void histogram_read(const struct histogram *histogram, struct durations *to)
{
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        to->buckets[i] += counter_read(&histogram->buckets[i]);
    to->nanoseconds += counter_read(&histogram->nanoseconds);
}

uint64_t durations_count(const struct durations *durations)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= HISTOGRAM_BOUNDS; i++)
        count += durations->buckets[i];
    return count;
}

double durations_seconds(const struct durations *durations)
{
    return (double)durations->nanoseconds / 1e9;
}
