/* The sorted nibbles: the tables behind them, and lookups that come to them; and the arithmetic of
 * false positives. */
#include "bucket.h"

#include <math.h>
#include <pthread.h>

/* 12 bits can also spell ranks that do not exist; those stay zero here and are never stored. */
uint16_t bucket_nibbles_of_rank[1 << 12];
uint16_t bucket_rank_of_nibble[BUCKET_SLOTS - 1][16];

/* Fours are ordered by their largest nibble, then the next and so on. A four's rank is how many
 * come before it: for each nibble the numbers of combinations with repetition of 4, 3, 2 and 1 out
 * of the nibbles below. */
static void fill_tables(void)
{
    unsigned rank = 0;
    for (unsigned d = 0; d < 16; d++)
        for (unsigned c = 0; c <= d; c++)
            for (unsigned b = 0; b <= c; b++)
                for (unsigned a = 0; a <= b; a++)
                    bucket_nibbles_of_rank[rank++] = (uint16_t)(a | b << 4 | c << 8 | d << 12);
    for (unsigned n = 0; n < 16; n++) {
        bucket_rank_of_nibble[0][n] = (uint16_t)(n * (n + 1) / 2);
        bucket_rank_of_nibble[1][n] = (uint16_t)(n * (n + 1) * (n + 2) / 6);
        bucket_rank_of_nibble[2][n] = (uint16_t)(n * (n + 1) * (n + 2) * (n + 3) / 24);
    }
}

/* All values are as likely as each other, but those whose low bits are 1: they stand in for 0 too.
 * What counts is how often two of a kind meet, as if there were a few values less. */
double bucket_match_rate(enum bucket_width width, double compared)
{
    const struct bucket_layout *layout = &bucket_layouts[width];
    double values =
        ldexp(1, (int)layout->fingerprint_bits) / (1 + ldexp(2, -(int)layout->low_bits));
    return -expm1(compared * log1p(-1 / values));
}

enum bucket_width bucket_width_for(double false_positive_rate)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_tables);
    enum bucket_width width = BUCKET_NARROW;
    while (width < BUCKET_WIDE && bucket_match_rate(width, 2 * BUCKET_SLOTS) > false_positive_rate)
        width++;
    return width;
}

/* Takes the fields of both words as one set, those of the other one bit lower: a branch on which of
 * them has the field would be foreseen only half of the time. */
BUCKET_INLINE bool either_has(const struct bucket_layout *layout, uint64_t word, uint64_t other,
                              uint32_t fingerprint)
{
    uint64_t low = fingerprint & bucket_low_mask(layout);
    uint64_t in_word = bucket_fields_equal(layout, word, low);
    uint64_t fields = in_word | bucket_fields_equal(layout, other, low) >> 1;
    for (; fields; fields &= fields - 1) {
        unsigned field = bucket_first_field(layout, fields);
        uint64_t holder = fields & -fields & in_word ? word : other;
        if ((bucket_nibbles(layout, holder) >> 4 * field & 15) == fingerprint >> layout->low_bits)
            return true;
    }
    return false;
}

bool bucket_narrow_either_has(uint64_t word, uint64_t other, uint32_t fingerprint)
{
    return either_has(&bucket_layouts[BUCKET_NARROW], word, other, fingerprint);
}

bool bucket_medium_either_has(uint64_t word, uint64_t other, uint32_t fingerprint)
{
    return either_has(&bucket_layouts[BUCKET_MEDIUM], word, other, fingerprint);
}
