/* What a client of a cluster is refused, whatever its state is. */
#ifndef NESTGUARD_REFUSALS_H
#define NESTGUARD_REFUSALS_H

#include "worker/request/request.h"

/* The command, which cannot be asked of several nodes, or whose keys nobody tells. */
void refusals_say(struct client *client, const struct request *request);

/* One that would be another database than the only one, or another user than the guard's. False: it
 * would not, and nothing has happened. */
bool refusals_of_db(struct client *client, const struct request *request);
bool refusals_of_user(struct client *client, const struct request *request);

#endif
