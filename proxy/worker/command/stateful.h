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

/* Refuses a client that tracks what it would not be told of: a guarded key. True: it has. */
bool stateful_refuse_tracked(struct client *client, const struct request *request);

/* A transaction in a cluster, as long as no key has told which node it is for (nodes.h). False: it
 * holds too much already, and nothing has changed. */
bool stateful_hold_late(struct client *client, const struct request *request);
void stateful_discard_late(struct client *client);
/* Where client->upstream leads: it begins there, and what was held is queued, which stays held.
 * False: it cannot, and the client has heard of that. The second: over a connection of its own,
 * instead of the one before. */
bool stateful_begin_late(struct client *client);
void stateful_say_late(struct client *client);

/* A command that the transaction must not have, and why; so it is given up. */
enum multi_refusal {
    REFUSED_STATE,      /* it would change the connection */
    REFUSED_NO_ROOM,    /* for a hint of the key that it writes */
    REFUSED_FILTER,     /* a keyspace's: the cache would look for it among its own, and perhaps say
                           that nothing is in it */
    REFUSED_ELSEWHERE,  /* its key is on another node */
    REFUSED_ON_ITS_WAY, /* or may be */
    REFUSED_ONE_NODE,   /* all nodes would have to be asked */
    REFUSED_UNTOLD      /* the cache does not say which node is meant */
};
void stateful_refuse_in_multi(struct client *client, enum multi_refusal why);

#endif
