/* Which absent keys are asked for: one command in many is looked at, where a batch is accounted
 * for.
 */
#ifndef NESTGUARD_SAMPLING_H
#define NESTGUARD_SAMPLING_H

#include "worker/request/request.h"

enum { SAMPLING_EACH = 512 }; /* on the average */

/* serving->sampling.next has been reached with these, which were served: looks at one of them, in
 * the name of all since the last. */
void sampling_take(struct client *client, const struct request *requests, size_t count);

#endif
