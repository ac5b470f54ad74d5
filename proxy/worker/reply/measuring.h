/* Where a worker's measures (measures.h) are taken: at the beginning of a lookup, at the cache's
 * answer, at its end, and of some turns.
 */
#ifndef NESTGUARD_MEASURING_H
#define NESTGUARD_MEASURING_H

#include "worker/reply/reply_slot.h"

/* Begins to time the slot, in the name of those that were passed over; and counts how long it has
 * been, for one of its lookups. For the functions below, who know when. */
void measuring_time(struct reply_slot *slot);
void measuring_count(const struct lookup *lookup, enum worker_time time);

/* The slot's command is on its way to the cache from now on. */
static inline void measuring_begin(struct reply_slot *slot)
{
    struct measures *measures = &slot->serving->measures;
    slot->times = 0;
    if (measures->passed)
        measures->passed--;
    else
        measuring_time(slot);
}

/* The cache has answered a lookup (CACHE_HIT and its kin). */
static inline void measuring_cached(const struct lookup *lookup, enum worker_time word)
{
    if (lookup->slot->times)
        measuring_count(lookup, word);
}

/* What has become of it. */
static inline void measuring_end(const struct lookup *lookup, enum lookup_outcome outcome)
{
    int first = lookup->shadowed ? TIME_ABSENT_REJECTED : TIME_POSSIBLE_REJECTED;
    measuring_cached(lookup, (enum worker_time)(first + (int)outcome));
}

/* Ten times a second: the next turn that serves anything is timed; and, once a second, the counts
 * of commands are made known. */
void measuring_tick(struct serving *serving);

#endif
