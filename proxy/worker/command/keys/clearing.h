/* Commands after which the cache has other keys, or none: FLUSHALL and its kin. */
#ifndef NESTGUARD_CLEARING_H
#define NESTGUARD_CLEARING_H

#include "worker/request/request.h"

/* It waits for the keeper before it is sent, and the client's connection may be another then; and
 * from then on nothing fills the cache: what the client asked before is answered first. In a
 * transaction it is EXEC that waits. */
bool clearing_must_wait(const struct client *client, const struct request *request);

/* Forwards the command when nothing is on its way to the cache any more that was read before it, to
 * where the client's commands go; in a cluster to this node. Until then, and until its reply has
 * come, nothing else of the client's is served. */
struct reply_slot *clearing_dispatch(struct client *client, const struct request *request);
struct reply_slot *clearing_dispatch_to(struct client *client, const struct request *request,
                                        int node);

/* The keeper has given its request back. */
void clearing_returned(struct clearing_request *request);

#endif
