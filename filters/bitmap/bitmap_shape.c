/* Whatever is worked out here must be what readers in other languages work out: integers of the
 * same width, that wrap where theirs do, and doubles in the same order of operations. The tests
 * hold it against values of the originals.
 */
#include "filters/bitmap/bitmap_shape.h"

#include <math.h>
#include <murmurhash.h>

enum { CLASSIC_FUNCTIONS = 3, LONG_BITS = 64 };

#define LN2 0.69314718055994530942

const char *bitmap_format_name(enum bitmap_format format)
{
    static const char *const names[] = {[BITMAP_GUAVA_64] = "guava-murmur3-128-64",
                                        [BITMAP_GUAVA_32] = "guava-murmur3-128-32",
                                        [BITMAP_CLASSIC] = "bkdr-sdbm-js"};
    return names[format];
}

/* ---- sizes ---- */

uint64_t bitmap_optimal_bits(uint64_t items, double rate)
{
    return (uint64_t)(-(double)items * log(rate) / (LN2 * LN2));
}

unsigned bitmap_optimal_functions(uint64_t items, uint64_t bits)
{
    double best = floor((double)bits / (double)items * LN2 + 0.5);
    if (best > BITMAP_FUNCTIONS_MAX)
        return BITMAP_FUNCTIONS_MAX;
    return best < 1 ? 1 : (unsigned)best;
}

/* Of n, p and a given k: p = (1 - e^(-kn/m))^k, solved for m. */
static double bits_for_functions(uint64_t items, double rate, unsigned functions)
{
    return -(double)functions * (double)items / log1p(-pow(rate, 1.0 / functions));
}

struct bitmap_shape bitmap_shape_for(enum bitmap_format format, uint64_t items, double rate)
{
    struct bitmap_shape shape = {.format = format, .functions = CLASSIC_FUNCTIONS};
    items = items ? items : 1;
    if (format == BITMAP_CLASSIC) {
        shape.bits = (uint64_t)ceil(bits_for_functions(items, rate, CLASSIC_FUNCTIONS));
    } else {
        shape.bits = bitmap_optimal_bits(items, rate);
        shape.functions = bitmap_optimal_functions(items, shape.bits);
    }
    shape.bits = (shape.bits / LONG_BITS + (shape.bits % LONG_BITS != 0)) * LONG_BITS;
    shape.bits = shape.bits ? shape.bits : LONG_BITS;
    return shape;
}

double bitmap_shape_rate(const struct bitmap_shape *shape, uint64_t items)
{
    double set = -expm1(-(double)shape->functions * (double)items / (double)shape->bits);
    return pow(set, shape->functions);
}

/* ---- places ---- */

/* Unsigned, so that sums wrap as Java's do. */
static void guava_64(const struct bitmap_shape *shape, const uint64_t hash[2], uint64_t *places)
{
    uint64_t combined = hash[0];
    for (unsigned i = 0; i < shape->functions; i++) {
        places[i] = (combined & INT64_MAX) % shape->bits;
        combined += hash[1];
    }
}

/* Guava counts from 1 here, and flips all bits of a sum that is negative to Java. */
static void guava_32(const struct bitmap_shape *shape, const uint64_t hash[2], uint64_t *places)
{
    uint32_t first = (uint32_t)hash[0], second = (uint32_t)(hash[0] >> 32);
    for (unsigned i = 1; i <= shape->functions; i++) {
        uint32_t combined = first + i * second;
        if (combined > INT32_MAX)
            combined = ~combined;
        places[i - 1] = combined % shape->bits;
    }
}

/* By names of the source: BKDR (Kernighan and Ritchie, with 131), SDBM, and JS (Justin Sobel). */
static void classic(const struct bitmap_shape *shape, const unsigned char *item, size_t length,
                    uint64_t *places)
{
    uint32_t bkdr = 0, sdbm = 0, js = 1315423911;
    for (size_t i = 0; i < length; i++) {
        bkdr = bkdr * 131 + item[i];
        sdbm = item[i] + (sdbm << 6) + (sdbm << 16) - sdbm;
        js ^= (js << 5) + item[i] + (js >> 2);
    }
    places[0] = bkdr % shape->bits;
    places[1] = sdbm % shape->bits;
    places[2] = js % shape->bits;
}

void bitmap_places(const struct bitmap_shape *shape, const void *item, size_t length,
                   uint64_t places[BITMAP_FUNCTIONS_MAX])
{
    uint64_t hash[2];
    if (shape->format == BITMAP_CLASSIC) {
        classic(shape, item, length, places);
        return;
    }
    lmmh_x64_128(item, (unsigned)length, 0, hash);
    if (shape->format == BITMAP_GUAVA_64)
        guava_64(shape, hash, places);
    else
        guava_32(shape, hash, places);
}
