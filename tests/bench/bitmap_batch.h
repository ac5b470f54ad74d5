/* Looking into a published bitmap: the commands that ask it for a batch of ids, and what their
 * replies say. Either a BITFIELD for each, of its places and of bit m, all in a pipeline; or one
 * EVALSHA of deploy/published.lua for all.
 */
#ifndef NESTGUARD_BENCH_BITMAP_BATCH_H
#define NESTGUARD_BENCH_BITMAP_BATCH_H

#include "filters/bitmap/bitmap_shape.h"

#include <stdbool.h>

enum { BITMAP_WORD_MOST = 100 };

struct bitmap_batch {
    char name[BITMAP_WORD_MOST]; /* "": there is none */
    struct bitmap_shape shape;
    char sha[BITMAP_WORD_MOST];        /* of the script; "": BITFIELD */
    char generation[BITMAP_WORD_MOST]; /* of NAME:info, for the script */
};

/* Reads "NAME,M,K" or "NAME,M,K,SHA,GENERATION". False: it is neither. */
bool bitmap_batch_parse(const char *text, struct bitmap_batch *batch);

/* How many bytes the commands for so many ids take at most. */
size_t bitmap_batch_most(const struct bitmap_batch *batch, unsigned count);

/* Writes them, and returns where they end. */
char *bitmap_batch_write(const struct bitmap_batch *batch, char *at, const uint64_t *ids,
                         unsigned count);

struct bitmap_found {
    unsigned absent, possible;
    unsigned failed; /* items that nothing can be said of, but that a reply was about */
};

/* What the first reply in p..end says; of the script's, it is about `count` ids. All 0: it is not
 * there as a whole, and else *next is what follows it. */
struct bitmap_found bitmap_batch_take(const struct bitmap_batch *batch, unsigned count,
                                      const char *p, const char *end, const char **next);

#endif
