/* Commands that tell of the values of rows, and are no lookups: writes that answer what was there
 * before, scripts, and what is only passed on. */
#ifndef NESTGUARD_TELLING_H
#define NESTGUARD_TELLING_H

#include "worker/request/request.h"

/* Of any command, lookups too. In doubt it does. */
bool telling_has_row(const struct serving *serving, const struct request *request);

/* It does, outside of MULTI, and the client's connection leads to a server that is doubted, or may
 * turn out to be: then it is to fail, as a lookup does. */
bool telling_in_doubt(const struct client *client, const struct request *request);

/* Forwards a command that nothing else has a say in. */
void telling_forward(struct client *client, const struct request *request);

#endif
