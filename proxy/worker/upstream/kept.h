/* The commands of a connection that have no answer yet, with their bytes: a node of a cluster may
 * answer that somebody else has the key, and then they are sent to him.
 *
 *   kept_begin() ─▶ the caller writes to `out` ─▶ kept_copy(), before it leaves ─▶ kept_take()
 */
#ifndef NESTGUARD_KEPT_H
#define NESTGUARD_KEPT_H

#include "base/buffer.h"
#include <stdint.h>

struct kept_command {
    uint64_t begin; /* of its bytes, counted from the connection's beginning */
    unsigned hops;  /* how often it was sent on before */
};

/* Zeroed: nothing is kept. */
struct kept {
    struct buffer commands; /* struct kept_command each, oldest first */
    struct buffer bytes;    /* of these, as far as they were copied */
    uint64_t begin;         /* what place `bytes` begins at */
    size_t taken;           /* the first of these: they go at the next call */
};

/* The next command begins at this place of all that the connection sends. */
void kept_begin(struct kept *kept, uint64_t place, unsigned hops);

/* `out` begins at this place, and what of it was not copied before is. */
void kept_copy(struct kept *kept, uint64_t place, struct span out);

/* The oldest command is answered. Its bytes are good until the next call. There is one. */
struct span kept_take(struct kept *kept, unsigned *hops);

void kept_clear(struct kept *kept);
void kept_finish(struct kept *kept);

#endif
