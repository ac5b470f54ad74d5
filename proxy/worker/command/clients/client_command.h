/* CLIENT: what it says of a client and what it does to one. */
#ifndef NESTGUARD_CLIENT_COMMAND_H
#define NESTGUARD_CLIENT_COMMAND_H

#include "worker/request/request.h"

/* Answers a CLIENT command of a client that has authenticated, or sends it on. What asks about
 * others, or is for the cache to permit, is answered later. */
void client_command(struct client *client, const struct request *request);

/* What is wrong with it, as Redis says it; or NULL. */
const char *client_name_error(struct span name);

/* Remembered (an empty one: that it is to have none; NULL: that it is to stay as it is), and true
 * once the cache has agreed. */
void client_ask_for_name(struct client *client, const struct span *name);
void client_take_name(struct client *client);

#endif
