/* SUBSCRIBE and its like in a cluster (listening.h), as they are under way. */
#ifndef NESTGUARD_LISTENING_COMMANDS_H
#define NESTGUARD_LISTENING_COMMANDS_H

#include "worker/client/listening.h"
#include "worker/client/listening_names.h"

/* The slot of an UNSUBSCRIBE or the like whose names have not all been sent yet; NULL: there is
 * none. */
const struct reply_slot *listening_ending_slot(const struct listening *listening);

/* Its client has gone, or all of its names are sent: nothing is left to be done in pieces. */
void listening_command_end(struct listening *listening);

#endif
