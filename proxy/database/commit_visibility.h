/* Changes that the log has told of and that queries may not see yet.
 *
 *   COMMIT ─▶ its record is in the log ─▶ the log tells of it ─▶ ... ─▶ queries see its rows
 *                                         └──── the row's key is unseen ────┘
 *
 * PostgreSQL sends a commit to whoever follows its log before it takes the transaction out of its
 * list of running ones: before it does, the commit waits for the synchronous standbys, however long
 * that takes, and the guard may be one of them. So a query that is sent after the change was told
 * may still find the row as it was before, and nothing else would ever tell that this is old.
 * Whoever keeps what a query says, or judges by it, must ask here when he sends the query.
 *
 * The database's word ends it: a snapshot (see snapshot.h) in which the transaction that made the
 * change is over. Every query that is sent after such an answer has come sees the change, provided
 * that both go to the same server. It does not matter when the snapshot was asked for, for what is
 * over stays so.
 *
 * Memory is bounded. Keys beyond the bound are not remembered one by one: then every key counts as
 * unseen until those transactions are over.
 */
#ifndef NESTGUARD_COMMIT_VISIBILITY_H
#define NESTGUARD_COMMIT_VISIBILITY_H

#include "database/snapshot.h"
#include "guard/key.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct commit_visibility;

struct visibility_options {
    size_t max_remembered; /* changed keys; and as many of their transactions */
    /* A snapshot is wanted sooner than in its turn: asked for by visibility_hurry(), at most every
     * 10 ms. May be NULL. */
    void (*wanted)(void *arg);
    void *arg;
};

struct commit_visibility *visibility_create(const struct visibility_options *options);
void visibility_destroy(struct commit_visibility *visibility); /* NULL is allowed */

/* The log tells of a row with this key, or of many rows of a keyspace, that transaction `xid` (not
 * a part of another) has changed or is changing. */
void visibility_changed(struct commit_visibility *visibility, struct key key, uint32_t xid);
void visibility_all_changed(struct commit_visibility *visibility, int keyspace, uint32_t xid);

/* A log is followed from a snapshot on, which is taken over: it tells nothing of what was over by
 * then, and some of that may not be seen yet. Snapshots that were learned before count no more: a
 * server that has crashed may have given their ids out again. `alone`: no other log is followed any
 * more, so that what was told before was over by then, or will be told again; on a server that took
 * over from another, its transactions may never have been. */
void visibility_follow(struct commit_visibility *visibility, struct snapshot *begin, bool alone);

/* The database's newest snapshot, as it prints it. */
void visibility_learn(struct commit_visibility *visibility, const char *text);

/* Whether a query that is sent now may miss a change of this key that was told. NULL: never. */
bool visibility_has(const struct commit_visibility *visibility, struct key key);

void visibility_hurry(struct commit_visibility
                          *visibility); /* somebody would like visibility_has() to become false */

#endif
