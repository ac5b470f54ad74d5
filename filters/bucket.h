/* A table of buckets, each with place for four fingerprints, packed into atomic words.
 *
 * A bucket is one word or two, and a word is read and written whole. Words that hold four
 * fingerprints hold them sorted by their top four bits: four sorted nibbles have only 3876 values
 * and take 12 bits instead of 16 (Fan et al., CoNEXT 2014, section 5.2: "semi-sorting"). The bit
 * that each fingerprint gains halves the false positives:
 *
 *   layout   word     holds                                   fingerprint  8 places full
 *   narrow   32 bits  rank of 4 nibbles (12) + 4 x 5 bits        9 bits        1.7e-2
 *   medium   64 bits  rank of 4 nibbles (12) + 4 x 13 bits      17 bits        6.1e-5
 *   wide     64 bits  2 x 32 bits; two words make a bucket      32 bits        1.9e-9
 *
 * With plain 16-bit fingerprints a table at 95 % would be wrong 1.16e-4 of the time, and so miss
 * the default rate of 1e-4 by a little.
 *
 * The low bits of a fingerprint, 5, 13 or 32, lie plain in a field of the word and are never all
 * zero: a field of zeros is an empty place. So neither a lookup of what is not there nor the
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

enum { BUCKET_SLOTS = 4 };

enum bucket_width { BUCKET_NARROW, BUCKET_MEDIUM, BUCKET_WIDE };

struct bucket_layout {
    unsigned word_bytes;       /* 4 or 8 */
    unsigned words;            /* of a bucket */
    unsigned fingerprints;     /* of a word */
    unsigned fingerprint_bits; /* top nibble and low bits, or low bits alone */
    unsigned low_bits;         /* of a fingerprint, as they lie in the word */
    unsigned copies;           /* of a fingerprint that may lie in its two buckets (cuckoo.h) */
    uint64_t ones;             /* the lowest bit of each fingerprint's low bits */
    bool (*either_has)(uint64_t word, uint64_t other, uint32_t fingerprint); /* NULL: no nibbles */
};

/* The rest of bucket_pair_has() below, for layouts with sorted nibbles, where a bucket is one word:
 * not inlined, as a lookup of what is not there comes to it once in a thousand times, and is faster
 * without it. */
bool bucket_narrow_either_has(uint64_t word, uint64_t other, uint32_t fingerprint);
bool bucket_medium_either_has(uint64_t word, uint64_t other, uint32_t fingerprint);

/* Here, and not in bucket.c, so that the compiler makes a lookup for each layout with the layout's
 * numbers as constants: everything that a lookup calls is BUCKET_INLINE. */
#define BUCKET_INLINE static inline __attribute__((always_inline))

static const struct bucket_layout bucket_layouts[] = {
    [BUCKET_NARROW] = {.word_bytes = 4,
                       .words = 1,
                       .fingerprints = 4,
                       .fingerprint_bits = 9,
                       .low_bits = 5,
                       .copies = 2,
                       .ones = 1 | 1 << 5 | 1 << 10 | 1 << 15,
                       .either_has = bucket_narrow_either_has},
    [BUCKET_MEDIUM] = {.word_bytes = 8,
                       .words = 1,
                       .fingerprints = 4,
                       .fingerprint_bits = 17,
                       .low_bits = 13,
                       .copies = 1,
                       .ones = 1 | UINT64_C(1) << 13 | UINT64_C(1) << 26 | UINT64_C(1) << 39,
                       .either_has = bucket_medium_either_has},
    [BUCKET_WIDE] = {.word_bytes = 8,
                     .words = 2,
                     .fingerprints = 2,
                     .fingerprint_bits = 32,
                     .low_bits = 32,
                     .copies = 1,
                     .ones = 1 | UINT64_C(1) << 32},
};

/* Private to filters/; the memory, at least 8-byte aligned, belongs to whoever sets it. */
struct bucket_table {
    enum bucket_width width;
    void *memory;
    uint64_t buckets;
};

/* Four nibbles in ascending order, the lowest first, by their rank; and what each nibble but the
 * lowest adds to the rank. */
extern uint16_t bucket_nibbles_of_rank[1 << 12];
extern uint16_t bucket_rank_of_nibble[BUCKET_SLOTS - 1][16];

/* The narrowest that stays within this rate with every place of two buckets taken. Also makes ready
 * what the functions below need: call it first. */
enum bucket_width bucket_width_for(double false_positive_rate);

/* How often a fingerprint equals one of `compared` others. */
double bucket_match_rate(enum bucket_width width, double compared);

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
    if (layout->fingerprint_bits == layout->low_bits)
        return 0;
    return bucket_nibbles_of_rank[word >> layout->fingerprints * layout->low_bits];
}

/* Of those fields, the ones whose nibble is this fingerprint's too. */
BUCKET_INLINE uint64_t bucket_fields_alike(const struct bucket_layout *layout, uint64_t word,
                                           uint64_t fields, uint32_t fingerprint)
{
    uint64_t alike = 0;
    if (layout->fingerprint_bits == layout->low_bits)
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

/* Takes item `from` out of a row of items of `bits` bits each, the lowest being number 0, and puts
 * `item` in as number `to`, counted without the one that was taken. */
BUCKET_INLINE uint64_t bucket_shift_in(uint64_t row, unsigned bits, unsigned from, unsigned to,
                                       uint64_t item)
{
    uint64_t one = (UINT64_C(1) << bits) - 1;
    uint64_t below = (UINT64_C(1) << from * bits) - 1;
    row = (row & below) << bits | (row & ~(below << bits | one)); /* number 0 is free now */
    below = (UINT64_C(1) << to * bits) - 1;
    return (row >> bits & below) | item << to * bits | (row & ~(below << bits | one));
}

/* The word with another fingerprint, or with 0, in the place of one field. Those that are left are
 * numbers 1 to 3 while the place for the new one is looked for: behind all that are not larger, so
 * that empty fields, which count as the smallest, come first. */
BUCKET_INLINE uint64_t bucket_put(const struct bucket_layout *layout, uint64_t word, unsigned field,
                                  uint32_t fingerprint)
{
    unsigned bits = layout->low_bits;
    uint64_t low = fingerprint & bucket_low_mask(layout);
    if (layout->fingerprint_bits == bits)
        return (word & ~(bucket_low_mask(layout) << field * bits)) | low << field * bits;
    uint64_t rank_shift = layout->fingerprints * bits;
    uint64_t nibble = fingerprint >> bits;
    uint64_t nibbles = bucket_nibbles(layout, word);
    unsigned to = 0;
    for (unsigned i = 0; i < BUCKET_SLOTS; i++)
        to += i != field && (nibbles >> 4 * i & 15) <= nibble && fingerprint != 0;
    nibbles = bucket_shift_in(nibbles, 4, field, to, nibble);
    uint64_t rank = nibbles & 15;
    for (unsigned i = 1; i < BUCKET_SLOTS; i++)
        rank += bucket_rank_of_nibble[i - 1][nibbles >> 4 * i & 15];
    uint64_t lows = word & ((UINT64_C(1) << rank_shift) - 1);
    return rank << rank_shift | bucket_shift_in(lows, bits, field, to, low);
}

/* What is in a bucket */

/* Writes `new` in the place of one `old`, in one release store; false when there is no `old`. With
 * old == 0 it adds, with new == 0 it takes away. */
BUCKET_INLINE bool bucket_replace(const struct bucket_layout *layout,
                                  const struct bucket_table *table, uint64_t bucket, uint32_t old,
                                  uint32_t new)
{
    for (uint64_t at = bucket * layout->words; at < (bucket + 1) * layout->words; at++) {
        uint64_t word = bucket_load(layout, table, at);
        uint64_t fields = old ? bucket_find(layout, word, old) : bucket_empty_fields(layout, word);
        if (fields) {
            unsigned field = bucket_first_field(layout, fields);
            bucket_store(layout, table, at, bucket_put(layout, word, field, new));
            return true;
        }
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

/* Is the fingerprint in one of two buckets? Looks at the plain bits of both before it decides
 * anything: in a lookup of what is not there, which is the one that must be fast, that makes one
 * branch which is nearly always foreseen. */
BUCKET_INLINE bool bucket_pair_has(const struct bucket_layout *layout,
                                   const struct bucket_table *table, const uint64_t pair[2],
                                   uint32_t fingerprint)
{
    uint64_t words[2];
    uint64_t low = fingerprint & bucket_low_mask(layout);
    uint64_t any = 0;
    for (unsigned of_bucket = 0; of_bucket < layout->words; of_bucket++) {
#pragma GCC unroll 2
        for (unsigned i = 0; i < 2; i++) {
            words[i] = bucket_load(layout, table, pair[i] * layout->words + of_bucket);
            any |= bucket_fields_equal(layout, words[i], low);
        }
    }
    if (!any)
        return false;
    return !layout->either_has || layout->either_has(words[0], words[1], fingerprint);
}

#endif
