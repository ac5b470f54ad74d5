#include "worker/command/watching.h"

#include "worker/client/pinned.h"

/* The first WATCH was refused, as when its key has moved: nothing is watched then, and in a cluster
 * the connection is of no use for a key that is elsewhere. Unless more was asked meanwhile, which
 * may have begun to watch. */
static void watch_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct replies *replies = slot->replies;
    if (reply.at[0] == '-' && replies->first == slot && replies->last == slot)
        client_of(replies)->pinned.states &= ~(unsigned)PINNED_WATCH;
    request_take_reply(slot, index, reply);
}

static const struct reply_slot_kind watch_kind = {.on_cache = watch_reply,
                                                  .on_cache_failure = request_take_failure};

void watching_begin(struct client *client, const struct request *request)
{
    if (request->count < 2) {
        request_forward(request, client);
        return;
    }
    bool watches = client->pinned.states & PINNED_WATCH;
    if (pinned_begin(client) < 0)
        return;
    client->pinned.states |= PINNED_WATCH;
    if (watches)
        request_forward(request, client);
    else
        request_forward_as(request, client, &watch_kind);
}

void watching_end(struct client *client, const struct request *request)
{
    client->pinned.states &= ~(unsigned)PINNED_WATCH;
    request_forward(request, client);
}
