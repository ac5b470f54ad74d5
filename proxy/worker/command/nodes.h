/* In a cluster: to which node a command goes, before it is dispatched like any other.
 *
 *   a key ─▶ its node                     MGET, DEL, MSET ... ─▶ key by key, put together again
 *   none ─▶ any node                      KEYS, FLUSHALL ...  ─▶ all nodes, likewise
 *   MULTI ─▶ held back until a key tells  SCAN ─▶ one node after the other
 *
 * Of a lookup of one key the node is looked up only when it is not rejected (client_route()).
 */
#ifndef NESTGUARD_NODES_H
#define NESTGUARD_NODES_H

#include "worker/request/request.h"

/* client->upstream leads to where the command goes, and it is to be dispatched; or true: it has
 * been, or was refused. */
bool nodes_dispatch(struct client *client, const struct request *request);

/* What is under way for the client is to be done before: the request begins or ends subscriptions,
 * or may be the first that goes to the cache of now, over connections on which nothing of that was
 * sent. */
bool nodes_must_wait(const struct client *client, const struct request *request);

#endif
