/* SipHash as in section 2 of the paper. Both variants are one inlined body with constant round
 * counts, so that the vectors published for 2-4 also vouch for 1-3. */
#include "filters/siphash.h"

#include "filters/short_word.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static inline uint64_t rotate_left(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static inline void rounds(struct state *s, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        s->v0 += s->v1;
        s->v2 += s->v3;
        s->v1 = rotate_left(s->v1, 13) ^ s->v0;
        s->v3 = rotate_left(s->v3, 16) ^ s->v2;
        s->v0 = rotate_left(s->v0, 32);
        s->v2 += s->v1;
        s->v0 += s->v3;
        s->v1 = rotate_left(s->v1, 17) ^ s->v2;
        s->v3 = rotate_left(s->v3, 21) ^ s->v0;
        s->v2 = rotate_left(s->v2, 32);
    }
}

static inline void absorb(struct state *s, uint64_t word, unsigned count)
{
    s->v3 ^= word;
    rounds(s, count);
    s->v0 ^= word;
}

/* The last word: what is left of the message, and its length modulo 256 in the top byte. Of a
 * message of a word or more it is the end of the last eight bytes, which one load gets. */
static inline uint64_t last_word(const unsigned char *rest, size_t length)
{
    size_t left = length % 8;
    uint64_t word;
    if (length < 8)
        word = short_word_load(rest, left);
    else
        word = word_load(rest + left - 8) >> 8 >> 8 * (7 - left); /* of none left, by 64 in all */
    return word | (uint64_t)length << 56;
}

static inline uint64_t siphash(struct state s, const void *bytes, size_t length, unsigned c,
                               unsigned d)
{
    const unsigned char *at = bytes;
    for (size_t left = length; left >= 8; left -= 8, at += 8)
        absorb(&s, word_load(at), c);
    absorb(&s, last_word(at, length), c);
    s.v2 ^= 0xff;
    rounds(&s, d);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

/* The constants spell "somepseudorandomlygeneratedbytes". */
static inline struct state keyed(uint64_t k0, uint64_t k1)
{
    return (struct state){
        .v0 = k0 ^ 0x736f6d6570736575,
        .v1 = k1 ^ 0x646f72616e646f6d,
        .v2 = k0 ^ 0x6c7967656e657261,
        .v3 = k1 ^ 0x7465646279746573,
    };
}

uint64_t siphash_1_3(uint64_t k0, uint64_t k1, const void *bytes, size_t length)
{
    return siphash(keyed(k0, k1), bytes, length, 1, 3);
}

uint64_t siphash_2_4(uint64_t k0, uint64_t k1, const void *bytes, size_t length)
{
    return siphash(keyed(k0, k1), bytes, length, 2, 4);
}
