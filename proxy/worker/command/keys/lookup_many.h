/* Lookups of many keys by one command, each with a course of its own:
 *
 *   MGET     one request to the cache for all keys that pass; each lookup keeps its part of the
 *            reply until all are there
 *   EXISTS   one request for each key that passes, because the cache gives only a sum; the reply is
 *            their sum, or the first error
 */
#ifndef NESTGUARD_LOOKUP_MANY_H
#define NESTGUARD_LOOKUP_MANY_H

#include "worker/request/request.h"

/* Whether the command is one of these, and one of its keys is guarded. Without any it is the
 * cache's alone, and its reply need not be taken apart. */
bool lookup_many_is_guarded(const struct client *client, const struct request *request);

/* Dispatches such a command; false: it is none, and nothing has been done. Keys without memory for
 * them are an error to the client. */
bool lookup_many_dispatch(struct client *client, const struct request *request);

/* In a cluster: an MGET or EXISTS whose keys are on several nodes, guarded or not. */
void lookup_each(struct client *client, const struct request *request);

#endif
