/* Removals that the log has told and nobody has vouched for yet: until then their keys stay in the
 * filters.
 *
 *   902 deletes a row ─▶ its commit is told ─▶ held ─▶ a probe finds the fingerprint unchanged,
 *                                               ▲      in a snapshot in which 902 is over
 *                                               │         ├─ and 902's removals ─▶ carried out
 *                                               └─────────┴─ of those that are not over there
 *
 * For the log may tell half of a transaction. One that deletes a row, puts another table in the
 * place of the one that is followed (renames it, detaches a partition, publishes less) and inserts
 * the row there is told as the deletion alone, though at no moment there was no row. What proves
 * that there is none is an answer that is of one moment: the transaction is over, so all that it
 * did beside is to be seen, and what the log tells of is what the generation was built for. Then
 * the keyspace's rows are, at that moment, those that the log tells of, and that one is gone. So:
 *
 *  - A transaction that altered anything, and nobody altered it back: the fingerprint is another,
 *    and the generation ends before the removal is carried out.
 *  - It was altered back by then. What kept rows from being told shows in the fingerprint all the
 *    same (publication_probe.c); a table that was away and is back was told of all the time.
 *  - It is altered after the answer: then there was a moment without the row. A row that comes back
 *    is known as late as any other that is not told of.
 *  - Others insert the key, or remove it, too, before or behind: a filter is a multiset, and each
 *    removal takes out one entry, which is its own row's or that of another row that is gone.
 *  - Only the snapshot tells that a transaction is over, its position in the log does not. A commit
 *    is in the log before it can be seen; where it waits for the guard, until the guard confirms
 *    it. So that does not wait for this, nor does any purge: only entries stay a little longer.
 *  - Each generation follows its own log from its own snapshot on, and holds what that tells: there
 *    is nothing to hand over.
 *
 * They are kept in memory as long as they are few, else in a file (spool.h).
 */
#ifndef NESTGUARD_REMOVALS_H
#define NESTGUARD_REMOVALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct removals;

struct removal {
    uint64_t hash; /* of the key */
    uint32_t xid;  /* the transaction, not a part of another */
    uint32_t keyspace;
};

struct removals *removals_create(size_t keyspaces);
void removals_destroy(struct removals *removals); /* NULL is allowed */

/* Whether what the transaction has removed may be carried out at once. */
bool removals_are_vouched(const struct removals *removals, uint32_t xid);

/* 0, or a negative errno of the temporary file. */
int removals_hold(struct removals *removals, const struct removal *removal);

/* A probe has found all as it was when the generation was built; this is its snapshot, as the
 * database prints it. Begins a round through all that are held, if any of them may be vouched for
 * by it and none is under way; one that is goes on by the newer snapshot. */
void removals_vouch(struct removals *removals, const char *snapshot);

/* The next of the round, and whether it is to be carried out; else it is held on. 1; 0 at the end
 * of the round; or a negative errno of the temporary file. */
int removals_next(struct removals *removals, struct removal *removal, bool *vouched);

bool removals_are_under_way(const struct removals *removals); /* a round is */

/* How many are held, in all and of one keyspace. */
size_t removals_count(const struct removals *removals);
size_t removals_of(const struct removals *removals, int keyspace);

#endif
