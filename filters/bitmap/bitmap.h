/* A Bloom filter as the bytes of a bitmap in Redis: bit i is SETBIT's offset i, the highest of byte
 * 0 the first.
 *
 *   bit 0 ... m - 1   the filter
 *   bit m             always set: a bitmap in which it is not is none
 *
 * Redis answers 0 for bits of a key that is not there, which would read as "no item at all"; a
 * reader that asks for bit m, too, can tell the two apart.
 */
#ifndef NESTGUARD_BITMAP_H
#define NESTGUARD_BITMAP_H

#include "filters/bitmap/bitmap_shape.h"

#include <stdbool.h>

struct bitmap;

/* Empty. NULL: there is no such filter (BITMAP_BITS_MAX), or no memory for it. */
struct bitmap *bitmap_create(const struct bitmap_shape *shape);
void bitmap_destroy(struct bitmap *bitmap); /* NULL is allowed */

/* Adds the item, on any thread, also on several at a time. Returns whether a bit was not set
 * before, and gives its places. */
bool bitmap_add(struct bitmap *bitmap, const void *item, size_t length,
                uint64_t places[BITMAP_FUNCTIONS_MAX]);
bool bitmap_contains(const struct bitmap *bitmap, const void *item, size_t length);

const struct bitmap_shape *bitmap_shape(const struct bitmap *bitmap);
uint64_t bitmap_set_bits(const struct bitmap *bitmap); /* of those below m */
bool bitmap_is_half_full(
    const struct bitmap *bitmap); /* past that it is wrong more often than meant */

/* What Redis holds. Nobody adds meanwhile. */
const void *bitmap_bytes(const struct bitmap *bitmap, size_t *length);

#endif
