/* From bytes to decisions: what becomes of each command of a client.
 *
 *   input ─▶ parse a batch ─▶ hash and prefetch its keys ─▶ each: local, lookup, hint, or forward
 */
#ifndef NESTGUARD_DISPATCH_H
#define NESTGUARD_DISPATCH_H

#include "client.h"

/* A clients.serve: takes one batch of commands. */
size_t dispatch_batch(struct client *client, char *input, size_t length);

#endif
