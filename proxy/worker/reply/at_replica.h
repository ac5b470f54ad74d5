/* What a replica of the cache says to a lookup, whichever command asks:
 *
 *   the replica ─ all that was asked for ─▶ the answer, as a primary's
 *        └─ nil, 0, nothing, a nil among values, an error, silence ─▶ the primary is asked
 *
 * So no nil is a replica's word: it may lack what the primary has, and says nothing of what the
 * row's absence would mean.
 */
#ifndef NESTGUARD_AT_REPLICA_H
#define NESTGUARD_AT_REPLICA_H

#include "worker/reply/reply_slot.h"

/* A request of the slot, whose kind can ask again, goes to a replica next. */
void at_replica_begin(struct reply_slot *slot);

/* In place of reply_slot_cache_reply() and reply_slot_cache_failure(), for such a request. */
void at_replica_reply(struct reply_slot *slot, unsigned index, struct span reply);
void at_replica_failure(struct reply_slot *slot, unsigned index, const char *why);

#endif
