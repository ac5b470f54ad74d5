/* Packing fingerprints into the words of a bucket, and the writer's changes to a bucket. */
#include "bucket.h"

#include <math.h>
#include <pthread.h>

/* 12 bits can also spell ranks that do not exist; those stay zero here and are never stored. */
uint16_t bucket_nibbles_of_rank[1 << 12];

static void fill_nibbles(void)
{
    unsigned rank = 0;
    for (unsigned d = 0; d < 16; d++)
        for (unsigned c = 0; c <= d; c++)
            for (unsigned b = 0; b <= c; b++)
                for (unsigned a = 0; a <= b; a++)
                    bucket_nibbles_of_rank[rank++] = (uint16_t)(a | b << 4 | c << 8 | d << 12);
}

/* The rank of a <= b <= c <= d among all such fours: how many come before it when they are ordered
 * by d, then c, then b, then a. (The numbers of combinations with repetition of 3, 2 and 1.) */
static uint64_t rank_of(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return d * (d + 1) * (d + 2) * (d + 3) / 24 + c * (c + 1) * (c + 2) / 6 + b * (b + 1) / 2 + a;
}

double bucket_match_rate(enum bucket_width width, double compared)
{
    double values = ldexp(1, (int)bucket_layouts[width].fingerprint_bits) - 1; /* 0 is not one */
    return -expm1(compared * log1p(-1 / values));
}

enum bucket_width bucket_width_for(double false_positive_rate)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_nibbles);
    enum bucket_width width = BUCKET_NARROW;
    while (width < BUCKET_WIDE && bucket_match_rate(width, 2 * BUCKET_SLOTS) > false_positive_rate)
        width++;
    return width;
}

static void order(uint32_t *a, uint32_t *b)
{
    if (*a > *b) {
        uint32_t larger = *a;
        *a = *b;
        *b = larger;
    }
}

static void sort_four(uint32_t f[4])
{
    order(&f[0], &f[1]);
    order(&f[2], &f[3]);
    order(&f[0], &f[2]);
    order(&f[1], &f[3]);
    order(&f[1], &f[2]);
}

/* Sorts the fingerprints if the layout wants it. */
static uint64_t pack(const struct bucket_layout *layout, uint32_t *fingerprints)
{
    unsigned low_bits = layout->low_bits;
    uint64_t mask = (UINT64_C(1) << low_bits) - 1;
    uint64_t word = 0;
    if (layout->fingerprint_bits > low_bits) {
        sort_four(fingerprints);
        word = rank_of(fingerprints[0] >> low_bits, fingerprints[1] >> low_bits,
                       fingerprints[2] >> low_bits, fingerprints[3] >> low_bits)
               << layout->fingerprints * low_bits;
    }
    for (unsigned i = 0; i < layout->fingerprints; i++)
        word |= (fingerprints[i] & mask) << i * low_bits;
    return word;
}

static void store(const struct bucket_table *table, uint64_t word, uint64_t value)
{
    if (bucket_layouts[table->width].word_bytes == sizeof(uint32_t)) {
        _Atomic(uint32_t) *words = table->memory;
        atomic_store_explicit(&words[word], (uint32_t)value, memory_order_release);
    } else {
        _Atomic(uint64_t) *words = table->memory;
        atomic_store_explicit(&words[word], value, memory_order_release);
    }
}

void bucket_read(const struct bucket_table *table, uint64_t bucket,
                 uint32_t fingerprints[BUCKET_SLOTS])
{
    const struct bucket_layout *layout = &bucket_layouts[table->width];
    for (unsigned i = 0; i < layout->words; i++)
        bucket_unpack(layout, bucket_load(layout, table, bucket * layout->words + i),
                      fingerprints + i * layout->fingerprints);
}

/* Writes `new` over the first `old`; false when there is none. */
static bool exchange(uint32_t *fingerprints, unsigned count, uint32_t old, uint32_t new)
{
    for (unsigned i = 0; i < count; i++) {
        if (fingerprints[i] == old) {
            fingerprints[i] = new;
            return true;
        }
    }
    return false;
}

bool bucket_replace(const struct bucket_table *table, uint64_t bucket, uint32_t old, uint32_t new)
{
    const struct bucket_layout *layout = &bucket_layouts[table->width];
    for (unsigned i = 0; i < layout->words; i++) {
        uint64_t word = bucket * layout->words + i;
        uint32_t fingerprints[BUCKET_SLOTS];
        bucket_unpack(layout, bucket_load(layout, table, word), fingerprints);
        if (exchange(fingerprints, layout->fingerprints, old, new)) {
            store(table, word, pack(layout, fingerprints));
            return true;
        }
    }
    return false;
}
