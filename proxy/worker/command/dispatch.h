/* From bytes to decisions: what becomes of each command of a client.
 *
 *   input ─▶ parse a batch ─▶ hash and prefetch its keys ─▶ each: local, lookup, hint, or forward
 *
 * A batch has commands of as many clients as have sent some in one turn of the loop.
 */
#ifndef NESTGUARD_DISPATCH_H
#define NESTGUARD_DISPATCH_H

#include "worker/client/client.h"

struct batch;

/* A worker's, as its clients.batch. */
struct batch *batch_create(struct serving *serving);
void batch_destroy(struct batch *batch);

/* Serves what it can of the client's input before the turn goes on to TURN_WRITE, and calls
 * client_took(). Until then the input must not move. */
void dispatch_input(struct client *client, char *input, size_t length);

#endif
