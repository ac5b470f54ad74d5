/* CLIENT: what it says of a client and what it does to one. */
#ifndef NESTGUARD_CLIENT_COMMAND_H
#define NESTGUARD_CLIENT_COMMAND_H

#include "worker/request/request.h"

/* Answers a CLIENT command of a client that has authenticated, or sends it on. What asks about
 * others, or is for the cache to permit, is answered later. */
void client_command(struct client *client, const struct request *request);

/* NULL, or the error. */
const char *client_set_name(struct client *client, struct span name);

#endif
