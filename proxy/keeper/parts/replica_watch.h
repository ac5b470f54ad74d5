/* What is told of the replicas that clients' lookups go to: workers know, each for itself, and one
 * of them is asked once a second.
 */
#ifndef NESTGUARD_REPLICA_WATCH_H
#define NESTGUARD_REPLICA_WATCH_H

#include "base/log/log_state.h"
#include "guard/messages.h"
#include "keeper/changes/outlet.h"
#include "worker/upstream/replicas.h"

/* Zeroed, but for the outlet: nothing is known. */
struct replica_watch {
    const struct outlet *outlet;
    struct replica_word *words; /* the last answer */
    size_t count;
    bool under_way;
    uint64_t asked;       /* clock_ms() */
    struct log_state log; /* bad: some are not read from */
};

/* Once in a while, while workers take messages; `wanted`: replicas are read from. */
void replica_watch_check_time(struct replica_watch *watch, bool wanted, uint64_t now);

void replica_watch_take_back(struct replica_watch *watch, struct replicas_message *message);

void replica_watch_finish(struct replica_watch *watch);

#endif
