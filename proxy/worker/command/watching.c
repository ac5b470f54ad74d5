#include "worker/command/watching.h"

#include "resp/reply.h"
#include "worker/client/pinned.h"

static void unwatch(struct client *client)
{
    client->pinned.states &= ~(unsigned)PINNED_WATCH;
    client->pinned.watching = NULL;
}

/* The only WATCH was refused, as when its key has moved: nothing is watched then, and in a cluster
 * the connection is of no use for a key that is elsewhere. */
static void watch_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    bool is_only = client->pinned.watching == slot;
    (void)index;
    if (is_only && reply_is_error(reply))
        unwatch(client);
    else if (is_only)
        client->pinned.watching = NULL;
    request_take_change(slot, reply, reply_is_ok(reply));
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
    if (pinned_begin_state(client) < 0)
        return;
    client->pinned.states |= PINNED_WATCH;
    struct reply_slot *slot = request_forward_as(request, client, &watch_kind);
    client->pinned.watching = watches ? NULL : slot;
}

void watching_end(struct client *client, const struct request *request)
{
    unwatch(client);
    request_forward(request, client);
}
