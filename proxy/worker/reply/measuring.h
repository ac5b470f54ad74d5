/* Where a worker's measures (measures.h) are taken: at the beginning of a lookup, at the cache's
 * answer, at its end, and of some turns.
 */
#ifndef NESTGUARD_MEASURING_H
#define NESTGUARD_MEASURING_H

#include "worker/reply/reply_slot.h"

/* The slot's command is on its way to the cache from now on. */
void measuring_begin(struct reply_slot *slot);

/* The cache has answered a lookup (CACHE_HIT and its kin). */
void measuring_cached(const struct lookup *lookup, enum worker_time word);

/* What has become of it. */
void measuring_end(const struct lookup *lookup, enum lookup_outcome outcome);

/* Ten times a second: the next turn that serves anything is timed; and, once a second, the counts
 * of commands are made known. */
void measuring_tick(struct serving *serving);

#endif
