/* A walk over all clients of a worker that takes its turn with whatever is in line (turn.h):
 *
 *   tour_begin() ─▶ some are met ─▶ line ─▶ some more ─▶ line ─▶ … ─▶ all have been: end()
 *
 * Who is here for longest is met first. Who comes meanwhile is not met, and who goes may.
 */
#ifndef NESTGUARD_TOUR_H
#define NESTGUARD_TOUR_H

#include "worker/client/roster.h"

struct tour {
    struct clients *clients;
    void (*meet)(struct tour *tour, struct client *client); /* may close it, and others */
    void (*end)(struct tour *tour);                         /* NULL: nothing follows */
    uint64_t now;                                           /* clock_ms() when these are met */
    /* tour.c's: */
    struct turn_task visit;
    struct roster_walk walk;
    uint64_t began; /* clock_ms() */
    uint64_t count; /* of clients there then */
    uint64_t met;
    bool is_under_way;
    bool again; /* once it has ended */
};

/* `clients`, `meet` and `end` are set; all else is zeroed. None is under way. A few clients are met
 * within the call, which then is all of it. */
void tour_begin(struct tour *tour);

/* All who are there now are met from now on: if one is under way, who has been met on it is met on
 * another one behind it. */
void tour_repeat(struct tour *tour);

static inline bool tour_is_under_way(const struct tour *tour)
{
    return tour->is_under_way;
}

#endif
