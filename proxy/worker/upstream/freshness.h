/* How old what a replica says may be, without trust in anybody's clock but our own.
 *
 *   time ──┬──────────────┬───────────────┬──────────▶
 *          asked          told            told
 *          the primary    it is at 700    the replica is at 720, of the same history
 *
 * The replica has done all that the primary had done when it answered, and so all that it had done
 * when it was *asked*: from now on it answers as of that moment or a later one. Whoever reads from
 * it for no longer than N after that moment never sees what is older than N.
 *
 * A few of the primary's words are remembered, so that a replica that is always a little behind is
 * told from one that hangs.
 */
#ifndef NESTGUARD_FRESHNESS_H
#define NESTGUARD_FRESHNESS_H

#include "redis/topology/redis_standing.h"

enum { FRESHNESS_WORDS = 16 };

/* Of one primary. Zeroed: it has said nothing. */
struct freshness {
    char history[REDIS_HISTORY_SIZE];
    struct {
        uint64_t asked, offset;
    } words[FRESHNESS_WORDS]; /* a ring */
    unsigned count;           /* of all that were noted */
};

/* The primary's word, which it was asked for at that time (any clock that does not go back; not 0).
 * One that is no primary, or does not say where it is, has said nothing, and all before is void. */
void freshness_note(struct freshness *freshness, const struct redis_standing *primary,
                    uint64_t asked);

/* As of when, or later, the replica answers. 0: that is not known, and *why (static text). */
uint64_t freshness_of(const struct freshness *freshness, const struct redis_standing *replica,
                      const char **why);

#endif
