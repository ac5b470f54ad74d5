/* The bytes of a connection's commands that have no answer yet: a node of a cluster may answer that
 * somebody else has the key, and then they are sent to him.
 *
 *   `out` ─ kept_copy(), before it leaves ─▶ kept ─ kept_bytes(), when it is refused ─▶ elsewhere
 *
 * Places are counted in bytes of all that the connection sends.
 */
#ifndef NESTGUARD_KEPT_H
#define NESTGUARD_KEPT_H

#include "base/buffer.h"
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing is kept. */
struct kept {
    struct buffer bytes;
    uint64_t begin; /* the place of the first of them */
};

/* `out` begins at this place, and what of it was not copied before is. What was sent before the
 * oldest command without an answer goes. False: there is no memory. */
bool kept_copy(struct kept *kept, uint64_t oldest, uint64_t place, struct span out);

/* Of what was copied, the command that begins there, and ends where the next one begins;
 * UINT64_MAX: there is no next one. Good until the next copy. */
struct span kept_bytes(const struct kept *kept, uint64_t begin, uint64_t end);

/* Everything is answered, or lost. What was given of it stays good until the next copy, too. */
void kept_clear(struct kept *kept);
void kept_finish(struct kept *kept);

#endif
