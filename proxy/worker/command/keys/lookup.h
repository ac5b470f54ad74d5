/* Lookups of one guarded key, by GET (read through) and by the commands that only read (rejected
 * here or forwarded as they are). Those of many keys are lookup_many.h's.
 *
 *   decide ─reject─▶ the absent answer
 *      └─pass─▶ cache ─hit─▶ reply
 *                  └─nil or failed─▶ keeper: load ─▶ reply
 */
#ifndef NESTGUARD_LOOKUP_H
#define NESTGUARD_LOOKUP_H

#include "worker/request/request.h"

/* Dispatches a lookup of one guarded key: request->keyspace is its keyspace. */
void lookup_dispatch(struct client *client, const struct request *request);

/* The same where the client may be a user of the cache's own. */
void lookup_dispatch_user(struct client *client, const struct request *request);

/* Whether the command is one that looks up keys, one or many, and one of these is guarded. */
bool lookup_is_guarded(const struct client *client, const struct request *request);

#endif
