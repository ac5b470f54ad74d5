/* As in write.c, but of all keys, and held back:
 *
 *   FLUSHALL ─▶ keeper: what is being loaded is stale ─▶ fills that were sent are answered ─▶ cache
 *            ─▶ its reply ─▶ keeper: what is being loaded is stale ─▶ reply
 *
 * A deletion of one key is repeated behind fills, but which keys were filled when this command got
 * to the cache nobody knows.
 */
#include "worker/command/keys/clearing.h"

#include "base/memory.h"
#include "worker/client/pinned.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write_proof.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

static void tell_keeper(struct reply_slot *slot, bool done, struct span command, int node)
{
    struct write_request *write = xmalloc(sizeof *write + command.length);
    *write = (struct write_request){.message = {.kind = MESSAGE_WRITE},
                                    .slot = slot,
                                    .done = done,
                                    .clears = true,
                                    .node = node,
                                    .key.text = {write->text, command.length}};
    memcpy(write->text, command.at, command.length);
    slot->waiting++;
    serving_ask_keeper(slot->serving, &write->message);
}

/* At the worker's end the keeper is not asked any more. */
static void conclude(struct reply_slot *slot)
{
    if (!slot->serving->ending)
        tell_keeper(slot, true, (struct span){"", 0}, NO_NODE);
}

static void clearing_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    reply_slot_append(slot, &slot->reply, reply);
    if (write_is_done(PROOF_NOT_NIL, reply))
        conclude(slot);
}

static void clearing_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(&slot->reply, "%s", why);
    conclude(slot);
}

static void clearing_unheard(struct reply_slot *slot, struct span reply)
{
    (void)reply;
    conclude(slot);
}

static const struct reply_slot_kind clearing_kind = {.on_cache = clearing_reply,
                                                     .on_cache_failure = clearing_failure,
                                                     .on_unheard = clearing_unheard};

bool clearing_must_wait(const struct client *client, const struct request *request)
{
    return client->replies.first && !(client->pinned.states & PINNED_MULTI) &&
           vanishing_has_all(request);
}

struct reply_slot *clearing_dispatch_to(struct client *client, const struct request *request,
                                        int node)
{
    struct buffer bytes = {0};
    struct reply_slot *slot = reply_slot_open(&client->replies, &clearing_kind);
    request_write(request, &bytes);
    tell_keeper(slot, false, buffer_span(&bytes), node);
    buffer_finish(&bytes);
    client_settle(client);
    reply_slot_answered(slot);
    return slot;
}

struct reply_slot *clearing_dispatch(struct client *client, const struct request *request)
{
    return clearing_dispatch_to(client, request, NO_NODE);
}

/* The map may have changed meanwhile. */
static bool lead(struct client *client, int node)
{
    struct pool *pool = client_pool(client);
    if (node == NO_NODE)
        return true;
    if (pool_next(pool, node - 1) != node)
        return false;
    client_go_to(client, node);
    return true;
}

/* Of a client that has gone nothing is sent any more. */
static void send_held(struct reply_slot *slot, const struct write_request *request)
{
    struct client *client = client_of(slot->replies);
    if (!lead(client, request->node))
        resp_write_error(&slot->reply, "NESTGUARD cluster changed: try again");
    else if (!upstream_try_send(client->upstream, slot, 0, request->key.text))
        resp_write_error(&slot->reply, "NESTGUARD out of memory");
}

void clearing_returned(const struct write_request *request)
{
    struct reply_slot *slot = request->slot;
    if (!request->done && slot->replies)
        send_held(slot, request);
    reply_slot_answered(slot);
}
