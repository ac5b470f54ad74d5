/* Writes of guarded keys: forwarded, and each a hint that its keys exist. */
#ifndef NESTGUARD_HINT_H
#define NESTGUARD_HINT_H

#include "request.h"

/* Forwards a COMMAND_WRITE; its reply leaves when every worker has admitted the keys that no filter
 * knew. */
void hint_dispatch(struct client *client, const struct request *request);

#endif
