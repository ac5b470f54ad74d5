/* Each over a connection that is only for this: those that others share may wait for the script. */
#include "worker/command/script_end.h"

#include "worker/client/waits.h"
#include "worker/command/wait.h"
#include "worker/upstream/upstream.h"

/* The number of a request is that of its connection. One of them, or all, may be lost by now. */
static void end(struct reply_slot *slot, unsigned number)
{
    struct client *client = client_of(slot->replies);
    if (client->pinned.waits && client->pinned.waits[number].upstream)
        waits_close(client, number, false);
}

static void on_reply(struct reply_slot *slot, unsigned number, struct span reply)
{
    request_take_reply(slot, number, reply);
    end(slot, number);
}

static void on_failure(struct reply_slot *slot, unsigned number, const char *why)
{
    request_take_failure(slot, number, why);
    end(slot, number);
}

static const struct reply_slot_kind end_kind = {.on_cache = on_reply,
                                                .on_cache_failure = on_failure};

static void ask(struct client *client, const struct request *request, struct reply_slot *slot,
                unsigned number)
{
    struct upstream *upstream = client->pinned.waits[number].upstream;
    upstream_set_urgent(upstream);
    request_write(request, upstream_command(upstream, slot, number));
}

void script_end_dispatch(struct client *client, const struct request *request)
{
    client->pinned.wait_is_counted = false;
    wait_ask_all(client, request, JOIN_ENDED, &end_kind, ask);
}
