/* Lookups of guarded keys: the verdict, the cache, and the read-through behind it.
 *
 *   decide ─reject─▶ the absent answer
 *      └─pass─▶ cache ─hit─▶ reply
 *                  └─nil or failed─▶ keeper: load ─▶ reply
 */
#ifndef NESTGUARD_LOOKUP_H
#define NESTGUARD_LOOKUP_H

#include "worker/command/request.h"

/* Dispatches a lookup of one guarded key: request->keyspace is its keyspace. */
void lookup_dispatch(struct client *client, const struct request *request);

/* The same where the client may be a user of the cache's own. */
void lookup_dispatch_user(struct client *client, const struct request *request);

/* Dispatches an MGET or EXISTS of which at least one key is guarded; false: the command is none. */
bool lookup_dispatch_many(struct client *client, const struct request *request);

/* Whether the command is one that looks up keys, and one of these is guarded. */
bool lookup_is_guarded(const struct client *client, const struct request *request);

#endif
