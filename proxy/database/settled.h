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
 * then. (A standby knows of ids only what it has replayed: there whoever asks takes the generation
 * that was built before that one.)
 *
 * Not each generation's bound is remembered, but that of the oldest that is still waited for: keys
 * that were told after it wait for the next in turn.
 */
#ifndef NESTGUARD_SETTLED_H
#define NESTGUARD_SETTLED_H

#include "database/snapshot.h"

/* Zeroed at the start. */
struct settled {
    uint64_t number;  /* the newest generation that is settled; 0: none */
    uint64_t before;  /* the one that was built before it; 0: none. Numbers are also of builds that
                         failed, and were tried again at once */
    uint64_t waiting; /* the one that is waited for; 0: none */
    uint64_t before_waiting;
    uint64_t built; /* the last one */
    uint32_t bound;
};

/* A generation has been built under this snapshot, the newest by its number; when its building had
 * begun, no transaction had id `next` yet, nor a later one. Returns the newest one that is settled
 * by it: whatever was being written when the building of that one began, and was committed at all,
 * this one has. */
uint64_t settled_learn(struct settled *settled, uint64_t number, const struct snapshot *snapshot,
                       uint32_t next);

/* What comes is of another server, whose transactions have other ids. */
void settled_forget(struct settled *settled);

#endif
