/* How the replies to the parts of a command become one (whole.h), as they come. */
#ifndef NESTGUARD_JOIN_H
#define NESTGUARD_JOIN_H

#include "resp/command_way.h"
#include "worker/reply/reply_slot.h"

enum { JOINS = JOIN_ENDED + 1 };

/* Takes one more into what the whole's slot has so far. Of lists it has elements alone: how many
 * there are is in `joined`; of JOIN_ANY, how many were not nil. */
void join_part(struct reply_slot *whole, enum command_join join, struct span reply);

#endif
