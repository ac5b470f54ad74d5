/* Several threads may set bits at once, and none is ever taken back: so each is an atomic "or" of
 * its byte, and no order between them matters. Who uploads the bytes does so when those threads
 * have ended. The bit behind the last is set from the beginning, and not counted.
 */
#include "filters/bitmap/bitmap.h"

#include <stdatomic.h>
#include <stdlib.h>

struct bitmap {
    struct bitmap_shape shape;
    _Atomic uint64_t set; /* bits below m; exact, as each is counted by who set it first */
    _Atomic unsigned char *bytes;
};

static unsigned char mask_of(uint64_t bit)
{
    return (unsigned char)(0x80u >> (bit % 8));
}

static size_t length_of(const struct bitmap_shape *shape)
{
    return (size_t)(shape->bits / 8) + 1;
}

static bool is_set(const struct bitmap *bitmap, uint64_t bit)
{
    return atomic_load_explicit(&bitmap->bytes[bit / 8], memory_order_relaxed) & mask_of(bit);
}

/* Whether it was not set before. Most are looked at first: a locked instruction costs more. */
static bool set(struct bitmap *bitmap, uint64_t bit)
{
    unsigned char mask = mask_of(bit);
    if (is_set(bitmap, bit))
        return false;
    return !(atomic_fetch_or_explicit(&bitmap->bytes[bit / 8], mask, memory_order_relaxed) & mask);
}

struct bitmap *bitmap_create(const struct bitmap_shape *shape)
{
    struct bitmap *bitmap = NULL;
    if (shape->bits <= BITMAP_BITS_MAX)
        bitmap = calloc(1, sizeof *bitmap);
    if (!bitmap)
        return NULL;
    bitmap->shape = *shape;
    bitmap->bytes = calloc(length_of(shape), 1);
    if (!bitmap->bytes) {
        free(bitmap);
        return NULL;
    }
    set(bitmap, shape->bits);
    return bitmap;
}

void bitmap_destroy(struct bitmap *bitmap)
{
    if (bitmap)
        free((void *)bitmap->bytes);
    free(bitmap);
}

bool bitmap_add(struct bitmap *bitmap, const void *item, size_t length,
                uint64_t places[BITMAP_FUNCTIONS_MAX])
{
    unsigned fresh = 0;
    bitmap_places(&bitmap->shape, item, length, places);
    for (unsigned i = 0; i < bitmap->shape.functions; i++)
        fresh += set(bitmap, places[i]);
    if (fresh)
        atomic_fetch_add_explicit(&bitmap->set, fresh, memory_order_relaxed);
    return fresh > 0;
}

bool bitmap_contains(const struct bitmap *bitmap, const void *item, size_t length)
{
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    bitmap_places(&bitmap->shape, item, length, places);
    for (unsigned i = 0; i < bitmap->shape.functions; i++)
        if (!is_set(bitmap, places[i]))
            return false;
    return true;
}

const struct bitmap_shape *bitmap_shape(const struct bitmap *bitmap)
{
    return &bitmap->shape;
}

uint64_t bitmap_set_bits(const struct bitmap *bitmap)
{
    return atomic_load_explicit(&bitmap->set, memory_order_relaxed);
}

bool bitmap_is_half_full(const struct bitmap *bitmap)
{
    return bitmap_set_bits(bitmap) > bitmap->shape.bits / 2;
}

/* A byte that is atomic has the form of a byte. */
const void *bitmap_bytes(const struct bitmap *bitmap, size_t *length)
{
    *length = length_of(&bitmap->shape);
    return (const void *)bitmap->bytes;
}
