/* Commands that change the state of their connection or wait on it, and what becomes of any command
 * while there is such a state.
 */
#ifndef NESTGUARD_STATEFUL_H
#define NESTGUARD_STATEFUL_H

#include "worker/request/request.h"

/* A command that command_is_stateful(): it gets the client's own connection. */
void stateful_dispatch(struct client *client, const struct request *request);

/* Dispatches any command of a client in one of enum pinned_state; false: as if there were none. */
bool stateful_pinned(struct client *client, const struct request *request);

/* Refuses a client that tracks what it would not be told of: a guarded key. True: it has. Inside
 * MULTI multi.c does, with the same words. */
bool stateful_refuse_tracked(struct client *client, const struct request *request);

#endif
