/* What a client may not do before it has authenticated, and what it is told, as Redis tells it. */
#ifndef NESTGUARD_NOAUTH_H
#define NESTGUARD_NOAUTH_H

#include "worker/request/request.h"

/* False: it is AUTH, HELLO, QUIT or RESET, with as many words as it may have, and nothing has
 * happened. Else it is answered here: the cache hears nothing of it. */
bool noauth_refuses(struct client *client, const struct request *request);

#endif
