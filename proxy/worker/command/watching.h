/* WATCH and UNWATCH: keys are watched over the client's own connection, which is held for that
 * until EXEC, DISCARD or UNWATCH. A WATCH that is refused holds nothing.
 */
#ifndef NESTGUARD_WATCHING_H
#define NESTGUARD_WATCHING_H

#include "worker/request/request.h"

void watching_begin(struct client *client, const struct request *request);
void watching_end(struct client *client, const struct request *request);

#endif
