#include "worker/command/reset.h"

#include "worker/client/pinned.h"

/* Refused, as by a server that is older than it, it has changed nothing. */
static void reset_reply(struct reply_slot *slot, unsigned index, struct span cache_reply)
{
    (void)index;
    if (request_take_change(slot, cache_reply, span_is(cache_reply, "+RESET\r\n")))
        pinned_reset(client_of(slot->replies));
}

/* Lost, the connection has taken with it whatever there was to be ended. */
static void reset_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    (void)why;
    resp_write_status(reply_slot_output(slot), "RESET");
    pinned_reset(client_of(slot->replies));
}

static const struct reply_slot_kind reset_kind = {.on_cache = reset_reply,
                                                  .on_cache_failure = reset_failure};

/* The own connection goes with all that was set on it. What the client sent before must be done
 * with it first. */
void reset_dispatch(struct client *client, const struct request *request)
{
    if (request->count == 1 && client->reply_off) /* CLIENT REPLY SKIP has effect all the same */
        client->replies.muted = client->reply_off = false;
    if (request->count > 1) {
        request_forward(request, client);
    } else if (client->pinned.own) {
        request_forward_as(request, client, &reset_kind);
        client_settle(client);
    } else {
        resp_write_status(client_reply(client), "RESET");
        pinned_reset(client);
        client_settle(client);
    }
}
