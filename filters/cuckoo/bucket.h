/* A table of buckets, each with a few places for fingerprints, packed into atomic words.
 *
 * A bucket is one word or two, and a word is read and written whole. Words of three to five
 * fingerprints hold them sorted by their top four bits: four sorted nibbles have only 3876 values
 * and take 12 bits instead of 16 (Fan et al., CoNEXT 2014, section 5.2: "semi-sorting"). The bits
 * that the fingerprints gain by that halve the false positives. The layouts are named after their
 * places and the bits of a fingerprint:
 *
 *   layout  word     holds                                    full to  a key takes  all places full
 *   4x9     32 bits  rank of 4 nibbles (12) + 4 x 5 bits        96 %      8.3 bits      1.7e-2
 *   3x11    32 bits  rank of 3 nibbles (10) + 3 x 7 bits        93 %     11.5 bits      3.0e-3
 *   5x14    64 bits  rank of 5 nibbles (14) + 5 x 10 bits       97 %     13.2 bits      6.1e-4
 *   4x17    64 bits  rank of 4 nibbles (12) + 4 x 13 bits       96 %     16.7 bits      6.1e-5
 *   3x22    64 bits  rank of 3 nibbles (10) + 3 x 18 bits       93 %     22.9 bits      1.4e-6
 *   4x32    64 bits  2 x 32 bits; two words make a bucket       96 %     33.3 bits      1.9e-9
 *
 * The more places a bucket has, the fuller the table can be, but the more fingerprints a lookup is
 * compared with. In tables of 20 million keys the first search that finds no place comes at 95.0 %
 * with three places, 97.4 % with four and 98.5 % with five, and 0.2 % later the stash is full;
 * what they are filled to keeps away from that. With four plain 16-bit fingerprints a table at 95 %
 * would be wrong 1.16e-4 of the time, and so miss the default rate of 1e-4 by a little.
 *
 * The low bits of a fingerprint, all but the nibble, lie plain in a field of the word and are never
 * all zero: a field of zeros is an empty place. So neither a lookup of what is not there nor the
 * question whether there is room has to decode the rank. A zeroed table is empty.
 *
 * Fields have no lasting numbers, as sorting moves things: fingerprints are named by value, and
 * equal ones are the same to everybody.
 */
#ifndef NESTGUARD_BUCKET_H
#define NESTGUARD_BUCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From the least precise to the most. */
enum bucket_width {
    BUCKET_4X9,
    BUCKET_3X11,
    BUCKET_5X14,
    BUCKET_4X17,
    BUCKET_3X22,
    BUCKET_4X32,
    BUCKET_WIDTHS
};

enum { BUCKET_SLOTS_MAX = 5 };

struct bucket_layout {
    enum bucket_width width;
    unsigned word_bytes;       /* 4 or 8 */
    unsigned words;            /* of a bucket */
    unsigned fingerprints;     /* of a word */
    unsigned fingerprint_bits; /* top nibble and low bits, or low bits alone */
    unsigned low_bits;         /* of a fingerprint, as they lie in the word */
    unsigned rank_bits;        /* of the nibbles; 0: there are none */
    unsigned copies;   /* of a fingerprint that may lie in its two buckets (cuckoo_writer.c) */
    unsigned permille; /* of all places, taken by as many keys as are asked for */
    uint64_t ones;     /* the lowest bit of each fingerprint's low bits */
};

/* Here, and not in bucket.c, so that the compiler makes a lookup for each layout with the layout's
 * numbers as constants: everything that a lookup calls is BUCKET_INLINE. */
#define BUCKET_INLINE static inline __attribute__((always_inline))

#define BUCKET_ONES(bits, fields) (((UINT64_C(1) << (bits) * (fields)) - 1) / ((1 << (bits)) - 1))

/* clang-format off */
static const struct bucket_layout bucket_layouts[BUCKET_WIDTHS] = {
    /* width    word bytes, words, fingerprints, their bits, low, rank, copies, permille, ones */
    {BUCKET_4X9,  4, 1, 4,  9,  5, 12, 2, 960, BUCKET_ONES(5, 4)},
    {BUCKET_3X11, 4, 1, 3, 11,  7, 10, 2, 930, BUCKET_ONES(7, 3)},
    {BUCKET_5X14, 8, 1, 5, 14, 10, 14, 1, 970, BUCKET_ONES(10, 5)},
    {BUCKET_4X17, 8, 1, 4, 17, 13, 12, 1, 960, BUCKET_ONES(13, 4)},
    {BUCKET_3X22, 8, 1, 3, 22, 18, 10, 1, 930, BUCKET_ONES(18, 3)},
    {BUCKET_4X32, 8, 2, 2, 32, 32,  0, 1, 960, 1 | UINT64_C(1) << 32},
};
/* clang-format on */

/* Does a statement in which `layout` is that of a width, and a constant to the compiler. */
#define BUCKET_WITH_LAYOUT(width, statement)                                                       \
    switch (width) {                                                                               \
        BUCKET_CASE(BUCKET_4X9, statement)                                                         \
        BUCKET_CASE(BUCKET_3X11, statement)                                                        \
        BUCKET_CASE(BUCKET_5X14, statement)                                                        \
        BUCKET_CASE(BUCKET_4X17, statement)                                                        \
        BUCKET_CASE(BUCKET_3X22, statement)                                                        \
        BUCKET_CASE(BUCKET_4X32, statement)                                                        \
    default:                                                                                       \
        break;                                                                                     \
    }

#define BUCKET_CASE(number, statement)                                                             \
    case number: {                                                                                 \
        const struct bucket_layout *layout = &bucket_layouts[number];                              \
        statement;                                                                                 \
        break;                                                                                     \
    }

/* Private to filters/; the memory, at least 8-byte aligned, belongs to whoever sets it. */
struct bucket_table {
    enum bucket_width width;
    void *memory;
    uint64_t buckets;
};

/* Three to five nibbles in ascending order, the lowest first, by their rank below a bit that says
 * how many bits a rank has; and what the nibble number i adds to the rank. */
extern uint32_t bucket_nibbles_of_rank[1 << 15];
extern uint16_t bucket_rank_of_nibble[BUCKET_SLOTS_MAX][16];

/* The narrowest that stays within this rate with every place of two buckets taken. Also makes ready
 * what the functions below need: call it first. */
enum bucket_width bucket_width_for(double false_positive_rate);

/* How often a fingerprint equals one of `compared` others. */
double bucket_match_rate(enum bucket_width width, double compared);

/* The rest of bucket_pair_has() below for layouts with sorted nibbles, where a bucket is one word:
 * not inlined, as a lookup of what is not there comes to it once in a thousand times, and is faster
 * without it. */
bool bucket_either_has(enum bucket_width width, uint64_t word, uint64_t other,
                       uint32_t fingerprint);

BUCKET_INLINE unsigned bucket_slots(const struct bucket_layout *layout)
{
    return layout->words * layout->fingerprints;
}

BUCKET_INLINE size_t bucket_bytes(const struct bucket_layout *layout)
{
    return (size_t)layout->word_bytes * layout->words;
}

BUCKET_INLINE void bucket_prefetch(const struct bucket_layout *layout,
                                   const struct bucket_table *table, uint64_t bucket)
{
    __builtin_prefetch((const char *)table->memory + bucket * bucket_bytes(layout));
}

/* Acquires, because a reader's look at the version must come after it (cuckoo.c). */
BUCKET_INLINE uint64_t bucket_load(const struct bucket_layout *layout,
                                   const struct bucket_table *table, uint64_t word)
{
    if (layout->word_bytes == sizeof(uint32_t)) {
        const _Atomic(uint32_t) *words = table->memory;
        return atomic_load_explicit(&words[word], memory_order_acquire);
    }
    const _Atomic(uint64_t) *words = table->memory;
    return atomic_load_explicit(&words[word], memory_order_acquire);
}

BUCKET_INLINE void bucket_store(const struct bucket_layout *layout,
                                const struct bucket_table *table, uint64_t word, uint64_t value)
{
    if (layout->word_bytes == sizeof(uint32_t)) {
        _Atomic(uint32_t) *words = table->memory;
        atomic_store_explicit(&words[word], (uint32_t)value, memory_order_release);
    } else {
        _Atomic(uint64_t) *words = table->memory;
        atomic_store_explicit(&words[word], value, memory_order_release);
    }
}

BUCKET_INLINE uint64_t bucket_low_mask(const struct bucket_layout *layout)
{
    return (UINT64_C(1) << layout->low_bits) - 1;
}

/* What the low bits of a hash give: any fingerprint whose own low bits are not all zero. */
BUCKET_INLINE uint32_t bucket_fingerprint(const struct bucket_layout *layout, uint64_t hash)
{
    uint64_t fingerprint = hash & ((UINT64_C(1) << layout->fingerprint_bits) - 1);
    return (uint32_t)(fingerprint + ((fingerprint & bucket_low_mask(layout)) == 0));
}

/* What is in one word */

/* The fields whose bits equal those of `low`: the top bit of each, all others zero. Fields that are
 * equal leave zero after the exclusive or; adding all ones but the top one to the rest of a field
 * carries into its top bit unless that rest is zero, and never beyond. */
BUCKET_INLINE uint64_t bucket_fields_equal(const struct bucket_layout *layout, uint64_t word,
                                           uint64_t low)
{
    uint64_t tops = layout->ones << (layout->low_bits - 1);
    uint64_t rests = tops - layout->ones;
    uint64_t differs = word ^ low * layout->ones;
    return ~(((differs & rests) + rests) | differs) & tops;
}

BUCKET_INLINE uint64_t bucket_empty_fields(const struct bucket_layout *layout, uint64_t word)
{
    return bucket_fields_equal(layout, word, 0);
}

/* The lowest of a set of fields as bucket_fields_equal() gives it, which must not be empty. */
BUCKET_INLINE unsigned bucket_first_field(const struct bucket_layout *layout, uint64_t fields)
{
    return (unsigned)__builtin_ctzll(fields) / layout->low_bits;
}

BUCKET_INLINE uint32_t bucket_nibbles(const struct bucket_layout *layout, uint64_t word)
{
    if (layout->rank_bits == 0)
        return 0;
    uint64_t rank = word >> layout->fingerprints * layout->low_bits;
    return bucket_nibbles_of_rank[UINT64_C(1) << layout->rank_bits | rank];
}

/* Of those fields, the ones whose nibble is this fingerprint's too. */
BUCKET_INLINE uint64_t bucket_fields_alike(const struct bucket_layout *layout, uint64_t word,
                                           uint64_t fields, uint32_t fingerprint)
{
    uint64_t alike = 0;
    if (layout->rank_bits == 0)
        return fields;
    for (; fields; fields &= fields - 1) {
        unsigned field = bucket_first_field(layout, fields);
        uint32_t nibble = bucket_nibbles(layout, word) >> 4 * field & 15;
        if (nibble == fingerprint >> layout->low_bits)
            alike |= fields & -fields;
    }
    return alike;
}

/* The fields that hold this fingerprint. */
BUCKET_INLINE uint64_t bucket_find(const struct bucket_layout *layout, uint64_t word,
                                   uint32_t fingerprint)
{
    uint64_t low = fingerprint & bucket_low_mask(layout);
    uint64_t fields = bucket_fields_equal(layout, word, low);
    return bucket_fields_alike(layout, word, fields, fingerprint);
}

BUCKET_INLINE uint32_t bucket_get(const struct bucket_layout *layout, uint64_t word, unsigned field)
{
    uint64_t low = word >> field * layout->low_bits & bucket_low_mask(layout);
    uint64_t nibble = bucket_nibbles(layout, word) >> 4 * field & 15;
    return (uint32_t)(nibble << layout->low_bits | low);
}

/* A word taken apart, to be changed. */
struct bucket_row {
    uint64_t nibbles; /* number i of 4 bits; zero where there are none */
    uint64_t lows;    /* field number i of low_bits bits */
};

BUCKET_INLINE struct bucket_row bucket_unpack(const struct bucket_layout *layout, uint64_t word)
{
    unsigned bits = layout->fingerprints * layout->low_bits;
    uint64_t lows = layout->rank_bits ? word & ((UINT64_C(1) << bits % 64) - 1) : word;
    return (struct bucket_row){bucket_nibbles(layout, word), lows};
}

BUCKET_INLINE uint64_t bucket_pack(const struct bucket_layout *layout, struct bucket_row row)
{
    uint64_t rank = row.nibbles & 15;
    if (layout->rank_bits == 0)
        return row.lows;
    for (unsigned i = 1; i < layout->fingerprints; i++)
        rank += bucket_rank_of_nibble[i][row.nibbles >> 4 * i & 15];
    return rank << layout->fingerprints * layout->low_bits | row.lows;
}

/* Takes item `at` out of a row of items of `bits` bits: those below it move up, and number 0
 * becomes zero. */
BUCKET_INLINE uint64_t bucket_shift_out(uint64_t row, unsigned bits, unsigned at)
{
    uint64_t below = (UINT64_C(1) << at * bits) - 1;
    uint64_t above = ~below << bits;
    return (row & above) | (row & below) << bits;
}

/* Puts an item into a row instead of number 0, as number `at`: those up to there move down. */
BUCKET_INLINE uint64_t bucket_shift_in(uint64_t row, unsigned bits, unsigned at, uint64_t item)
{
    uint64_t below = (UINT64_C(1) << at * bits) - 1;
    uint64_t above = ~below << bits;
    return (row & above) | (row >> bits & below) | item << at * bits;
}

/* Empty fields come first in a word: a field that is emptied becomes number 0, and a fingerprint
 * takes the place of number 0 and goes behind all fields whose nibble is not larger. */
BUCKET_INLINE void bucket_row_take(const struct bucket_layout *layout, struct bucket_row *row,
                                   unsigned field)
{
    row->nibbles = bucket_shift_out(row->nibbles, 4, field);
    row->lows = bucket_shift_out(row->lows, layout->low_bits, field);
}

BUCKET_INLINE void bucket_row_add(const struct bucket_layout *layout, struct bucket_row *row,
                                  uint32_t fingerprint)
{
    uint64_t low = fingerprint & bucket_low_mask(layout);
    uint64_t nibble = layout->rank_bits ? fingerprint >> layout->low_bits : 0;
    unsigned at = 0;
    for (unsigned i = 1; i < layout->fingerprints; i++)
        at += (row->nibbles >> 4 * i & 15) <= nibble;
    row->nibbles = bucket_shift_in(row->nibbles, 4, at, nibble);
    row->lows = bucket_shift_in(row->lows, layout->low_bits, at, low);
}

/* What is in a bucket. Each of these writes once, with release, or not at all. */

/* Writes `new` in the place of one `old`, or leaves that empty if `new` is 0; false when there is
 * no `old`. */
BUCKET_INLINE bool bucket_replace(const struct bucket_layout *layout,
                                  const struct bucket_table *table, uint64_t bucket, uint32_t old,
                                  uint32_t new)
{
    for (unsigned i = 0; i < layout->words; i++) {
        uint64_t at = bucket * layout->words + i;
        uint64_t word = bucket_load(layout, table, at);
        uint64_t fields = bucket_find(layout, word, old);
        if (!fields)
            continue;
        struct bucket_row row = bucket_unpack(layout, word);
        bucket_row_take(layout, &row, bucket_first_field(layout, fields));
        if (new != 0)
            bucket_row_add(layout, &row, new);
        bucket_store(layout, table, at, bucket_pack(layout, row));
        return true;
    }
    return false;
}

/* False when there is no room. */
BUCKET_INLINE bool bucket_add(const struct bucket_layout *layout, const struct bucket_table *table,
                              uint64_t bucket, uint32_t fingerprint)
{
    for (unsigned i = 0; i < layout->words; i++) {
        uint64_t at = bucket * layout->words + i;
        uint64_t word = bucket_load(layout, table, at);
        if (!bucket_empty_fields(layout, word))
            continue;
        struct bucket_row row = bucket_unpack(layout, word);
        bucket_row_add(layout, &row, fingerprint);
        bucket_store(layout, table, at, bucket_pack(layout, row));
        return true;
    }
    return false;
}

/* More than 0 if there is room; of two buckets the emptier one has more, if they are of one word
 * (in which empty fields come first). */
BUCKET_INLINE uint64_t bucket_room(const struct bucket_layout *layout,
                                   const struct bucket_table *table, uint64_t bucket)
{
    uint64_t room = 0;
    for (unsigned i = 0; i < layout->words; i++)
        room |= bucket_empty_fields(layout, bucket_load(layout, table, bucket * layout->words + i));
    return room;
}

/* A word of each of two buckets, and whether some of the plain bits there are this fingerprint's:
 * if not, it is in neither. Both buckets are looked at before anything is decided: where nothing is
 * there, which must be fast, that makes one branch which is nearly always foreseen. */
struct bucket_pair_words {
    uint64_t word[2];
    uint64_t any;
};

BUCKET_INLINE struct bucket_pair_words bucket_pair_look(const struct bucket_layout *layout,
                                                        const struct bucket_table *table,
                                                        const uint64_t pair[2],
                                                        uint32_t fingerprint)
{
    struct bucket_pair_words words = {.any = 0};
    uint64_t low = fingerprint & bucket_low_mask(layout);
    for (unsigned of_bucket = 0; of_bucket < layout->words; of_bucket++) {
#pragma GCC unroll 2
        for (unsigned i = 0; i < 2; i++) {
            words.word[i] = bucket_load(layout, table, pair[i] * layout->words + of_bucket);
            words.any |= bucket_fields_equal(layout, words.word[i], low);
        }
    }
    return words;
}

/* Is the fingerprint in one of two buckets? */
BUCKET_INLINE bool bucket_pair_has(const struct bucket_layout *layout,
                                   const struct bucket_table *table, const uint64_t pair[2],
                                   uint32_t fingerprint)
{
    struct bucket_pair_words words = bucket_pair_look(layout, table, pair, fingerprint);
    if (!words.any)
        return false;
    return layout->rank_bits == 0 ||
           bucket_either_has(layout->width, words.word[0], words.word[1], fingerprint);
}

#endif
