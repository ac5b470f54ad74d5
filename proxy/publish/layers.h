/* What is in the cache under one name, as the guard has it itself: one bitmap, or one that has
 * grown, several of the same shape, of which only the newest is added to. An item is in when one of
 * them has it.
 */
#ifndef NESTGUARD_LAYERS_H
#define NESTGUARD_LAYERS_H

#include "base/span.h"
#include "config/config.h"
#include "filters/bitmap/bitmap.h"

/* Zeroed: there is none. */
struct layers {
    struct bitmap *at[PUBLISH_LAYERS_MAX];
    unsigned count;
};

void layers_begin(struct layers *layers, struct bitmap *first); /* of an empty one; taken */
void layers_finish(struct layers *layers);                      /* empty again */

/* Adds to the newest what none has. Returns whether there are bits to be written, at these places
 * of the newest. */
bool layers_add(struct layers *layers, struct span item, uint64_t places[BITMAP_FUNCTIONS_MAX]);

/* Another one, empty. False: there are as many as may be, or no memory. */
bool layers_grow(struct layers *layers);

bool layers_are_full(const struct layers *layers); /* the newest is, half */
const struct bitmap_shape *layers_shape(const struct layers *layers);
uint64_t layers_set_bits(const struct layers *layers);

#endif
