/* A table of buckets, each with place for four fingerprints, packed into atomic words.
 *
 * A bucket is one word or two, and a word is read and written whole. Words that hold four
 * fingerprints hold them sorted by their top four bits: four sorted nibbles have only 3876 values
 * and take 12 bits instead of 16 (Fan et al., CoNEXT 2014, section 5.2: "semi-sorting"). The bit
 * that each fingerprint gains halves the false positives:
 *
 *   layout   word     holds                                   fingerprint  8 places full
 *   narrow   32 bits  rank of 4 nibbles (12) + 4 x 5 bits        9 bits        1.6e-2
 *   medium   64 bits  rank of 4 nibbles (12) + 4 x 13 bits      17 bits        6.1e-5
 *   wide     64 bits  2 x 32 bits; two words make a bucket      32 bits        1.9e-9
 *
 * With plain 16-bit fingerprints a table at 95 % would be wrong 1.16e-4 of the time, and so miss
 * the default rate of 1e-4 by a little.
 *
 * A place in a word has no number, as sorting moves things: fingerprints are named by value, and
 * equal ones are the same to everybody. 0 is an empty place. A zeroed table is empty.
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
    uint64_t ones;             /* the lowest bit of each fingerprint's low bits */
};

/* Here, and not in bucket.c, so that the compiler makes a lookup for each layout with the layout's
 * numbers as constants: everything that a lookup calls is BUCKET_INLINE. */
#define BUCKET_INLINE static inline __attribute__((always_inline))

static const struct bucket_layout bucket_layouts[] = {
    [BUCKET_NARROW] = {.word_bytes = 4,
                       .words = 1,
                       .fingerprints = 4,
                       .fingerprint_bits = 9,
                       .low_bits = 5,
                       .ones = 1 | 1 << 5 | 1 << 10 | 1 << 15},
    [BUCKET_MEDIUM] = {.word_bytes = 8,
                       .words = 1,
                       .fingerprints = 4,
                       .fingerprint_bits = 17,
                       .low_bits = 13,
                       .ones = 1 | UINT64_C(1) << 13 | UINT64_C(1) << 26 | UINT64_C(1) << 39},
    [BUCKET_WIDE] = {.word_bytes = 8,
                     .words = 2,
                     .fingerprints = 2,
                     .fingerprint_bits = 32,
                     .low_bits = 32,
                     .ones = 1 | UINT64_C(1) << 32},
};

/* Private to filters/; the memory, at least 8-byte aligned, belongs to whoever sets it. */
struct bucket_table {
    enum bucket_width width;
    void *memory;
    uint64_t buckets;
};

/* Four nibbles in ascending order, the lowest first, by their rank. */
extern uint16_t bucket_nibbles_of_rank[1 << 12];

/* The narrowest that stays within this rate with every place of two buckets taken. Also makes ready
 * what the functions below need: call it first. */
enum bucket_width bucket_width_for(double false_positive_rate);

/* How often a fingerprint equals one of `compared` others. */
double bucket_match_rate(enum bucket_width width, double compared);

/* The fingerprints of a bucket, for the writer. */
void bucket_read(const struct bucket_table *table, uint64_t bucket,
                 uint32_t fingerprints[BUCKET_SLOTS]);

/* Writes `new` in the place of one `old`, in one release store; false when there is no `old`. With
 * old == 0 it adds, with new == 0 it takes away. */
bool bucket_replace(const struct bucket_table *table, uint64_t bucket, uint32_t old, uint32_t new);

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

/* Do the low bits of any fingerprint in the word equal this one's? Compares all at once: low bits
 * that are equal leave zero after the exclusive or, and the lowest such field borrows from its own
 * top bit when one is subtracted, which it did not have set. (Fields above it may then be wrong
 * about themselves: harmless, as the answer is "yes" already. Bits above the fields never touch
 * them.) */
BUCKET_INLINE bool bucket_word_may_have(const struct bucket_layout *layout, uint64_t word,
                                        uint32_t fingerprint)
{
    uint64_t low = fingerprint & ((UINT64_C(1) << layout->low_bits) - 1);
    uint64_t differs = word ^ low * layout->ones;
    uint64_t top_bits = layout->ones << (layout->low_bits - 1);
    return (((differs - layout->ones) & ~differs) & top_bits) != 0;
}

/* What is in a word, ordered as it lies there. */
BUCKET_INLINE void bucket_unpack(const struct bucket_layout *layout, uint64_t word,
                                 uint32_t *fingerprints)
{
    uint32_t nibbles = 0;
    if (layout->fingerprint_bits > layout->low_bits)
        nibbles = bucket_nibbles_of_rank[word >> layout->fingerprints * layout->low_bits];
    uint64_t mask = (UINT64_C(1) << layout->low_bits) - 1;
#pragma GCC unroll 4
    for (unsigned i = 0; i < layout->fingerprints; i++) {
        uint64_t nibble = nibbles >> 4 * i & 15;
        fingerprints[i] =
            (uint32_t)(nibble << layout->low_bits | (word >> i * layout->low_bits & mask));
    }
}

BUCKET_INLINE bool bucket_word_has(const struct bucket_layout *layout, uint64_t word,
                                   uint32_t fingerprint)
{
    uint32_t fingerprints[BUCKET_SLOTS];
    bool has = false;
    bucket_unpack(layout, word, fingerprints);
#pragma GCC unroll 4
    for (unsigned i = 0; i < layout->fingerprints; i++)
        has |= fingerprints[i] == fingerprint;
    return has;
}

/* Is the fingerprint in one of two buckets? Looks at both before it decides anything: in a
 * lookup of what is not there, which is the one that must be fast, that makes one branch which is
 * nearly always foreseen. */
BUCKET_INLINE bool bucket_pair_has(const struct bucket_layout *layout,
                                   const struct bucket_table *table, const uint64_t pair[2],
                                   uint32_t fingerprint)
{
    uint64_t words[2 * 2];
    unsigned count = 2 * layout->words;
    bool may_have = false, has = false;
#pragma GCC unroll 4
    for (unsigned i = 0; i < count; i++) {
        words[i] = bucket_load(layout, table, pair[i % 2] * layout->words + i / 2);
        may_have |= bucket_word_may_have(layout, words[i], fingerprint);
    }
    if (!may_have)
        return false;
#pragma GCC unroll 4
    for (unsigned i = 0; i < count; i++)
        has |= bucket_word_has(layout, words[i], fingerprint);
    return has;
}

#endif
