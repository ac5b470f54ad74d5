/* SYNC and PSYNC: what the cache sends from then on are no replies, but bytes of replication. */
#ifndef NESTGUARD_RELAYING_H
#define NESTGUARD_RELAYING_H

#include "worker/request/request.h"

/* Over the client's own connection, which is for nothing else any more. */
void relaying_begin(struct client *client, const struct request *request);

/* A command of a client that has begun it: what a replica has to say is passed on. False: the
 * client has not. */
bool relaying_pass(struct client *client, const struct request *request);

/* An empty one, by which a replica shows that it is there. */
void relaying_pass_empty(struct client *client);

#endif
