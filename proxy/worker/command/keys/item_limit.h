/* How many items a command may have that is served in one go: everybody on the worker waits for it.
 */
#ifndef NESTGUARD_ITEM_LIMIT_H
#define NESTGUARD_ITEM_LIMIT_H

#include "worker/client/client.h"

enum { ITEMS_MAX = 16384 };

/* True: there are more, and the client has got an error for it. */
bool item_limit_refuses(struct client *client, size_t items);

#endif
