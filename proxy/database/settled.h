/* Without a log to follow: up to which generation all that may have been under way is known.
 *
 *   a key is written through the guard, its row's transaction may still run
 *      ─▶ generation 4 is begun: the next transaction to write would get id 105
 *      ─▶ generation 5: is all below 105 over in its snapshot? Then the row is in it, or never will
 *
 * Whoever had written something in the database when he told the guard of the key had an id by
 * then, below any bound that is asked for later. (A snapshot's own upper bound will not do: it is
 * behind the last transaction that is over, and others run beyond it.) A generation whose snapshot
 * has passed the bound knows what became of all of them: the same one, when nobody writes just
 * then.
 *
 * A standby knows of ids only what it has replayed, so its bound is above the ids of those alone
 * who had one when what it last replayed was written. What counts is how long ago that was, not how
 * many generations: builds may follow each other within moments, when somebody asks for one or the
 * table of hints is crowded, and then neither has heard of what the primary wrote before both. So a
 * bound speaks for the newest generation that was begun before all that the standby may lack:
 *
 *   3 begun     4 begun  ·  key is written       ·  5 begun
 *   ────┴──────────┴─────────────┴───────────────────┴─▶   the bound of 5 speaks for 4: not for the
 *                        └────── behind ─────────┘         key, which waits for one that speaks
 *                                                          for 5
 *
 * Not each generation's bound is remembered, but that of the oldest that is still waited for: keys
 * that were told after it wait for the next in turn. Likewise not each one's beginning.
 */
#ifndef NESTGUARD_SETTLED_H
#define NESTGUARD_SETTLED_H

#include "database/snapshot.h"

/* Zeroed at the start. */
struct settled {
    uint64_t number; /* the newest generation that is settled; 0: none */
    /* Speaks for all that were told before the generation `waiting` was begun; 0: none is waited
     * for. */
    uint64_t waiting;
    uint32_t bound;
    uint64_t old;   /* the newest that is known to be old enough for a bound to speak for it */
    uint64_t young; /* the next that will be; 0: none */
    uint64_t young_begun;
};

/* A generation that has been built, the newest by its number. Times are of clock_ms(). */
struct settled_build {
    uint64_t number;
    const struct snapshot *snapshot; /* that it has */
    uint32_t next;   /* when that was asked, the server knew of no transaction with this id, nor a
                        later one */
    uint64_t begun;  /* not before it was announced that it would be built */
    uint64_t asked;  /* not after `next` was */
    uint64_t behind; /* in ms: for so long, before `asked`, the server may not know of what was
                        written; 0 of a primary; UINT64_MAX: nobody can say */
};

/* Returns the newest generation that is settled by it: whatever was being written when the building
 * of that one began, and was committed at all, this one has. */
uint64_t settled_learn(struct settled *settled, const struct settled_build *build);

/* What comes is of another server, whose transactions have other ids, and which may be further
 * behind. */
void settled_forget(struct settled *settled);

#endif
