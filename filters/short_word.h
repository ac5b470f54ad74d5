/* Few bytes as one number, for hashing and comparing. */
#ifndef NESTGUARD_SHORT_WORD_H
#define NESTGUARD_SHORT_WORD_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t word_load(const void *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return le64toh(word);
}

static inline uint64_t half_word_load(const unsigned char *bytes)
{
    uint32_t half;
    memcpy(&half, bytes, sizeof half);
    return le32toh(half);
}

/* The at most eight bytes as a little-endian number, with zeros above. No loop, and no look beyond
 * them: loads from both ends overlap, and what both have is the same in both. */
static inline uint64_t short_word_load(const void *from, size_t length)
{
    const unsigned char *bytes = from;
    if (length >= 4)
        return half_word_load(bytes) | half_word_load(bytes + length - 4) << 8 * (length - 4);
    if (!length)
        return 0;
    size_t middle = length / 2, last = length - 1;
    return (uint64_t)bytes[0] | (uint64_t)bytes[middle] << 8 * middle |
           (uint64_t)bytes[last] << 8 * last;
}

#endif
