/* All of one name have the shape of the first: a reader works out an item's places once, and looks
 * for them in each.
 */
#include "publish/layers.h"

static struct bitmap *newest(const struct layers *layers)
{
    return layers->at[layers->count - 1];
}

void layers_begin(struct layers *layers, struct bitmap *first)
{
    *layers = (struct layers){{first}, 1};
}

void layers_finish(struct layers *layers)
{
    for (unsigned i = 0; i < layers->count; i++)
        bitmap_destroy(layers->at[i]);
    *layers = (struct layers){0};
}

/* What an older one has, be it by chance, needs no bits: readers find it there as well. */
bool layers_add(struct layers *layers, struct span item, uint64_t places[BITMAP_FUNCTIONS_MAX])
{
    for (unsigned i = 0; i + 1 < layers->count; i++)
        if (bitmap_contains(layers->at[i], item.at, item.length))
            return false;
    return bitmap_add(newest(layers), item.at, item.length, places);
}

bool layers_grow(struct layers *layers)
{
    if (layers->count == PUBLISH_LAYERS_MAX)
        return false;
    layers->at[layers->count] = bitmap_create(layers_shape(layers));
    if (!layers->at[layers->count])
        return false;
    layers->count++;
    return true;
}

bool layers_are_full(const struct layers *layers)
{
    return bitmap_is_half_full(newest(layers));
}

const struct bitmap_shape *layers_shape(const struct layers *layers)
{
    return bitmap_shape(layers->at[0]);
}

uint64_t layers_set_bits(const struct layers *layers)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < layers->count; i++)
        bits += bitmap_set_bits(layers->at[i]);
    return bits;
}
