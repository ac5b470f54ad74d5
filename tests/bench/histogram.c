/* See histogram.h. */
#include "histogram.h"

#include <stddef.h>

enum { PARTS = 1 << HISTOGRAM_PART_BITS };

/* Below PARTS a cell is a nanosecond. From there on, a power of two has PARTS cells, each of the
 * 2^shift durations that agree in all but their last `shift` bits. */
static size_t cell_of(uint64_t ns)
{
    if (ns < PARTS)
        return (size_t)ns;
    int shift = 63 - HISTOGRAM_PART_BITS - __builtin_clzll(ns);
    size_t part = (size_t)(ns >> shift) - PARTS;
    return ((size_t)(shift + 1) << HISTOGRAM_PART_BITS) + part;
}

/* The longest duration of a cell. */
static uint64_t cell_end(size_t cell)
{
    if (cell < PARTS)
        return cell;
    size_t shift = (cell >> HISTOGRAM_PART_BITS) - 1;
    return ((uint64_t)(PARTS + (cell & (PARTS - 1)) + 1) << shift) - 1;
}

void histogram_add(struct histogram *histogram, uint64_t ns, uint64_t times)
{
    histogram->cells[cell_of(ns)] += times;
    histogram->count += times;
    if (ns > histogram->longest)
        histogram->longest = ns;
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->count), seen = 0;
    for (size_t i = 0; i < HISTOGRAM_CELLS; i++) {
        seen += histogram->cells[i];
        if (seen > wanted || (seen && seen == histogram->count)) {
            uint64_t end = cell_end(i);
            return end < histogram->longest ? end : histogram->longest;
        }
    }
    return 0;
}

void histogram_print(const struct histogram *histogram, FILE *out)
{
    static const struct {
        const char *name;
        double share;
    } points[] = {{"p50_us", 0.5}, {"p99_us", 0.99}, {"p999_us", 0.999}};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        fprintf(out, "\"%s\": %.2f, ", points[i].name,
                (double)histogram_at(histogram, points[i].share) / 1e3);
    fprintf(out, "\"longest_us\": %.2f", (double)histogram->longest / 1e3);
}
