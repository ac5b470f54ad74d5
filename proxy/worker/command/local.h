/* Commands about the client's own connection, which the shared cache connections must not see:
 * AUTH, HELLO, SELECT, QUIT, RESET. The guard answers them by itself, or sends them over the
 * client's own.
 */
#ifndef NESTGUARD_LOCAL_H
#define NESTGUARD_LOCAL_H

#include "worker/request/request.h"

/* Dispatches a COMMAND_LOCAL that the client may give; whatever the next command depends on settles
 * the client. */
void local_dispatch(struct client *client, const struct request *request);

#endif
