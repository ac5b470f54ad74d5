/* Bloom filters that other programs read for themselves: which bits an item has, by conventions
 * that those programs know, and how large such a filter is made.
 *
 *   guava-murmur3-128-64   Guava's MURMUR128_MITZ_64: one 128-bit hash of the bytes; place i is at
 *                          (low + i * high) without its sign, modulo m
 *   guava-murmur3-128-32   MURMUR128_MITZ_32: the same with the halves of its low 64 bits, i from 1
 *   bkdr-sdbm-js           one bit each of three string hashes of 32 bits, modulo m
 *
 * (Kirsch and Mitzenmacher, "Less hashing, same performance", 2006; Partow, "General Purpose Hash
 * Function Algorithms".)
 *
 * None of them is keyed: whoever may choose items can choose false positives. They are for readers
 * that have no secret.
 */
#ifndef NESTGUARD_BITMAP_SHAPE_H
#define NESTGUARD_BITMAP_SHAPE_H

#include <stddef.h>
#include <stdint.h>

enum bitmap_format { BITMAP_GUAVA_64, BITMAP_GUAVA_32, BITMAP_CLASSIC };

enum { BITMAP_FORMATS = 3, BITMAP_FUNCTIONS_MAX = 32 };

/* What Redis takes as one string: 512 MB, with a byte to spare. */
#define BITMAP_BITS_MAX ((UINT64_C(1) << 32) - 64)

struct bitmap_shape {
    enum bitmap_format format;
    uint64_t bits;      /* m, a multiple of 64 */
    unsigned functions; /* k */
};

const char *bitmap_format_name(enum bitmap_format format);

/* Guava's formulas, with its roundings: -n ln p / ln² 2 cut to an integer; and m / n * ln 2 rounded
 * to the nearest, at least 1. For n = 500 and p = 0.003: 6,045 bits and 8 functions. */
uint64_t bitmap_optimal_bits(uint64_t items, double rate);
unsigned bitmap_optimal_functions(uint64_t items, uint64_t bits);

/* For so many items (none counts as one) at this rate of false positives, 0 to 1. The bits are
 * those of the formula, rounded up to whole longs as Guava does when it makes a filter, and with
 * the classic format so many more as its three functions need. More than BITMAP_BITS_MAX: there can
 * be no such filter. */
struct bitmap_shape bitmap_shape_for(enum bitmap_format format, uint64_t items, double rate);

/* The rate to be expected with so many items in it. */
double bitmap_shape_rate(const struct bitmap_shape *shape, uint64_t items);

/* The item's places, as many as there are functions; some may be equal. */
void bitmap_places(const struct bitmap_shape *shape, const void *item, size_t length,
                   uint64_t places[BITMAP_FUNCTIONS_MAX]);

#endif
