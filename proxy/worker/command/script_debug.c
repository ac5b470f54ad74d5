/* Redis refuses it where replies to its client are outstanding. Here these may be another
 * connection's, or of no connection at all, so that the cache knows of none.
 */
#include "worker/command/script_debug.h"

bool script_debug_refuses(struct client *client, const struct request *request)
{
    const struct replies *replies = &client->replies;
    if (request->command->effect != EFFECT_ALTER || request->count != 3 ||
        strcmp(request->command->name, "SCRIPT") != 0 ||
        !span_is_word(request->arguments[1], "DEBUG") || client->pinned.states & PINNED_USER ||
        (!replies->first && !replies_waiting(replies)))
        return false;
    client_answer(client, "ERR SCRIPT DEBUG must be called outside a pipeline");
    return true;
}
