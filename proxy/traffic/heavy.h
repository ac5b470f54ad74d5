/* The heaviest items of a stream, in bounded memory: Space-Saving (Metwally, Agrawal and El Abbadi,
 * "Efficient computation of frequent and top-k elements in data streams", 2005, section 3), with
 * weights.
 *
 * With k places and a stream that weighs N: every count is at least the item's true one, and too
 * high by its `error` at most, which is N / k at most; an item that weighs more than N / k has a
 * place.
 */
#ifndef NESTGUARD_HEAVY_H
#define NESTGUARD_HEAVY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct heavy;

/* Items are so many bytes each, a multiple of eight, compared as they are: what is behind a text is
 * zero. */
struct heavy *heavy_create(size_t places, size_t item_size);
void heavy_destroy(struct heavy *heavy); /* NULL is allowed */
void heavy_clear(struct heavy *heavy);

/* So much more for this item, which is copied. A walk through all places. */
void heavy_add(struct heavy *heavy, const void *item, uint64_t weight);

/* As if `into` had seen both streams: what holds of each alone holds of the sum. Of the same places
 * and items (Agarwal et al., "Mergeable summaries", 2012, section 3). */
void heavy_merge(struct heavy *into, const struct heavy *from);

struct heavy_entry {
    const void *item;      /* until anything is done with the summary */
    uint64_t count, error; /* it weighs `count` at most, and `count - error` at least */
};

/* The heaviest first; returns how many there are, `most` at most. */
size_t heavy_top(const struct heavy *heavy, struct heavy_entry *out, size_t most);

/* What all items together weigh, those without a place as well. */
uint64_t heavy_total(const struct heavy *heavy);

/* Whether it is known to have been added more than once, and mostly to weigh what is counted: the
 * heaviest of a stream in which all weigh the same are no such. */
bool heavy_stands_out(const struct heavy *heavy, const struct heavy_entry *entry);

#endif
