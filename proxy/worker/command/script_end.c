/* Each over a connection that is only for this: those that others share may wait for the script. */
#include "worker/command/script_end.h"

#include "worker/client/pinned.h"
#include "worker/command/whole.h"
#include "worker/upstream/upstream.h"

/* The number of a request is that of its connection. One of them, or all, may be lost by now. */
static void end(struct reply_slot *slot, unsigned number)
{
    struct client *client = client_of(slot->replies);
    if (client->pinned.waits && client->pinned.waits[number].upstream)
        pinned_close_wait(client, number, false);
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

void script_end_dispatch(struct client *client, const struct request *request)
{
    int opened = pinned_open_waits(client);
    if (opened == 0)
        whole_to_all(client, request, JOIN_ENDED); /* it fails, at once */
    if (opened <= 0)
        return;
    client->pinned.wait_is_counted = false;
    struct whole whole = whole_begin(client, JOIN_ENDED);
    for (unsigned i = 0; i < (unsigned)opened; i++) {
        struct reply_slot *slot = reply_slot_open(&client->replies, &end_kind);
        upstream_set_urgent(client->pinned.waits[i].upstream);
        request_write(request, upstream_command(client->pinned.waits[i].upstream, slot, i));
        reply_slot_answered(slot);
    }
    whole_end(&whole);
    client_settle(client);
}
