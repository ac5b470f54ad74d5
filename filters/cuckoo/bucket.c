/* The sorted nibbles: the tables behind them, and lookups that come to them; and the arithmetic of
 * false positives. */
#include "filters/cuckoo/bucket.h"

#include <math.h>
#include <pthread.h>

/* Some ranks do not exist that as many bits can spell; those stay zero here and are never stored.
 */
uint32_t bucket_nibbles_of_rank[1 << 15];
uint16_t bucket_rank_of_nibble[BUCKET_SLOTS_MAX][16];

/* Rows are ordered by their largest nibble, then the next and so on: after a row comes that with
 * the lowest nibble one more, and those below it at zero, that can be more and still be in order.
 */
static void next_row(unsigned nibbles[BUCKET_SLOTS_MAX], unsigned count)
{
    unsigned i = 0;
    while (i + 1 < count && nibbles[i] == nibbles[i + 1])
        nibbles[i++] = 0;
    nibbles[i]++;
}

static void fill_nibbles(const struct bucket_layout *layout)
{
    unsigned count = layout->fingerprints, nibbles[BUCKET_SLOTS_MAX] = {0};
    uint32_t *row = &bucket_nibbles_of_rank[1 << layout->rank_bits];
    for (; nibbles[count - 1] < 16; row++) {
        for (unsigned i = 0; i < count; i++)
            *row |= nibbles[i] << 4 * i;
        next_row(nibbles, count);
    }
}

/* A row's rank is how many come before it: for nibble number i the combinations with repetition of
 * i + 1 out of those below it, n (n + 1) ... (n + i) / (i + 1)!. */
static void fill_ranks(void)
{
    for (unsigned n = 0; n < 16; n++) {
        unsigned combinations = 1;
        for (unsigned i = 0; i < BUCKET_SLOTS_MAX; i++) {
            combinations = combinations * (n + i) / (i + 1);
            bucket_rank_of_nibble[i][n] = (uint16_t)combinations;
        }
    }
}

static void fill_tables(void)
{
    fill_ranks();
    fill_nibbles(&bucket_layouts[BUCKET_3X22]);
    fill_nibbles(&bucket_layouts[BUCKET_4X17]);
    fill_nibbles(&bucket_layouts[BUCKET_5X14]);
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
    enum bucket_width width = 0;
    while (width + 1 < BUCKET_WIDTHS &&
           bucket_match_rate(width, 2 * bucket_slots(&bucket_layouts[width])) > false_positive_rate)
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

bool bucket_either_has(enum bucket_width width, uint64_t word, uint64_t other, uint32_t fingerprint)
{
    BUCKET_WITH_LAYOUT(width, return either_has(layout, word, other, fingerprint))
    return true;
}
