#include "worker/command/keys/item_limit.h"

bool item_limit_refuses(struct client *client, size_t items)
{
    if (items <= ITEMS_MAX)
        return false;
    resp_write_error(client_reply(client),
                     "NESTGUARD items: nothing was done: a command may have %d of them here, and "
                     "this one has %zu; send several commands",
                     ITEMS_MAX, items);
    return true;
}
