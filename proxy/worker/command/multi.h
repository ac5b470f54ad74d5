/* MULTI, EXEC and DISCARD, and what stands between them. */
#ifndef NESTGUARD_MULTI_H
#define NESTGUARD_MULTI_H

#include "worker/request/request.h"

/* MULTI; and EXEC or DISCARD, which without MULTI are errors. */
void multi_begin(struct client *client, const struct request *request);
void multi_end(struct client *client, const struct request *request);

/* Of a client in MULTI: what EXEC has to know of any command, and a command that is queued. */
void multi_count(struct client *client, const struct request *request, bool stateful);
void multi_queue(struct client *client, const struct request *request);

/* A command that the transaction must not have, and why; so it is given up. */
enum multi_refusal {
    REFUSED_STATE,      /* it would change the connection */
    REFUSED_NO_ROOM,    /* for a hint of the key that it writes */
    REFUSED_FILTER,     /* a keyspace's: the cache would look for it among its own, and perhaps say
                           that nothing is in it */
    REFUSED_TRACKED,    /* it would be tracked (stateful_refuse_tracked()) */
    REFUSED_ELSEWHERE,  /* its key is on another node */
    REFUSED_ON_ITS_WAY, /* or may be */
    REFUSED_ONE_NODE,   /* all nodes would have to be asked */
    REFUSED_UNTOLD      /* the cache does not say which node is meant */
};
/* The second: of one that was not counted. */
void multi_spoil(struct client *client, enum multi_refusal why);
void multi_refuse(struct client *client, enum multi_refusal why);
extern const char tracked_refusal[]; /* REFUSED_TRACKED in words */

/* A transaction in a cluster, as long as no key has told which node it is for (nodes.h). False: it
 * holds too much already, and nothing has changed. */
bool multi_hold_late(struct client *client, const struct request *request);
void multi_discard_late(struct client *client);
/* Where client->upstream leads: it begins there, and what was held is queued, which stays held.
 * False: it cannot, and the client has heard of that. The second: over a connection of its own,
 * instead of the one before. */
bool multi_begin_late(struct client *client);
void multi_say_late(struct client *client);

#endif
