/* Commands about the client's own connection, which the shared cache connections must not see:
 * AUTH, HELLO, SELECT, CLIENT, QUIT. The guard answers them by itself.
 */
#ifndef NESTGUARD_LOCAL_H
#define NESTGUARD_LOCAL_H

#include "request.h"

void local_dispatch(struct client *client, const struct request *request);

#endif
