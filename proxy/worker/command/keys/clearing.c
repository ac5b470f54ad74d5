/* As in write.c, but of all keys, and held back:
 *
 *   FLUSHALL ─▶ keeper: no more fills ─▶ those that were sent are answered ─▶ cache ─▶ its reply
 *            ─┬─ done ─▶ keeper: what is being loaded is stale ─┬─▶ fills go on ─▶ reply
 *             └─ refused: nothing is ───────────────────────────┘
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

#include <stdlib.h>
#include <string.h>

static void tell_keeper(struct reply_slot *slot, struct clearing_request *request,
                        enum clearing_step step)
{
    request->step = step;
    slot->waiting++;
    serving_ask_keeper(slot->serving, &request->message);
}

/* As long as fills wait for it, its worker does not end, whether its client is still there or not;
 * and its reply is read, however little the client takes of others. */
static void hold_fills(struct reply_slot *slot, struct clearing_request *request)
{
    slot->clearing = request;
    slot->serving->asked++;
    if (slot->replies)
        client_of(slot->replies)->pinned.clearings++;
}

static struct clearing_request *release_fills(struct reply_slot *slot)
{
    struct clearing_request *request = slot->clearing;
    slot->clearing = NULL;
    slot->serving->asked--;
    if (slot->replies)
        client_of(slot->replies)->pinned.clearings--;
    return request;
}

/* At the worker's end the keeper is not asked any more. */
static void conclude(struct reply_slot *slot, bool done)
{
    struct clearing_request *request = release_fills(slot);
    if (slot->serving->ending)
        free(request);
    else
        tell_keeper(slot, request, done ? CLEARING_DONE : CLEARING_REFUSED);
}

/* Of EXEC's writes one may be known to be lost (write_returned()), which is the answer. */
static bool is_answered(const struct reply_slot *slot)
{
    return buffer_length(&slot->reply) > 0;
}

static void say_error(struct reply_slot *slot, const char *why)
{
    if (!is_answered(slot))
        resp_write_error(&slot->reply, "%s", why);
}

static void clearing_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (!is_answered(slot))
        reply_slot_append(slot, &slot->reply, reply);
    conclude(slot, write_outcome(PROOF_NOT_NIL, reply) == WRITE_DONE);
}

static void clearing_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    say_error(slot, why);
    conclude(slot, true);
}

static void clearing_unheard(struct reply_slot *slot, struct span reply)
{
    conclude(slot, !reply.length || write_outcome(PROOF_NOT_NIL, reply) == WRITE_DONE);
}

static const struct reply_slot_kind clearing_kind = {.on_cache = clearing_reply,
                                                     .on_cache_failure = clearing_failure,
                                                     .on_unheard = clearing_unheard};

/* Behind what is under way at its own connection, such as a BLPOP, EXEC would be in its place; but
 * everybody's fills would wait as well, for as long. */
static bool is_exec_of_one(const struct client *client, const struct request *request)
{
    const struct pinned *pinned = &client->pinned;
    return request->command->effect == EFFECT_EXEC &&
           (pinned->clears || (pinned->remakes && buffer_length(&pinned->deleted)));
}

bool clearing_must_wait(const struct client *client, const struct request *request)
{
    if (!client->replies.first)
        return false;
    return client->pinned.states & PINNED_MULTI ? is_exec_of_one(client, request)
                                                : vanishing_has_all(request);
}

struct reply_slot *clearing_dispatch_to(struct client *client, const struct request *request,
                                        int node)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &clearing_kind);
    struct buffer bytes = {0};
    request_write(request, &bytes);
    struct span command = buffer_span(&bytes);
    struct clearing_request *held = xmalloc(sizeof *held + command.length);
    *held = (struct clearing_request){.message = {.kind = MESSAGE_CLEARING},
                                      .slot = slot,
                                      .node = node,
                                      .length = command.length};
    memcpy(held->command, command.at, command.length);
    buffer_finish(&bytes);
    tell_keeper(slot, held, CLEARING_ASKED);
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

/* False: it is not. */
static bool send_held(struct reply_slot *slot, const struct clearing_request *request)
{
    struct client *client = client_of(slot->replies);
    struct span command = {request->command, request->length};
    if (!lead(client, request->node))
        say_error(slot, "NESTGUARD cluster changed: try again");
    else if (!upstream_try_send(client->upstream, slot, 0, command))
        say_error(slot, "NESTGUARD out of memory");
    else
        return true;
    return false;
}

/* Of a client that has gone nothing is sent any more. */
void clearing_returned(struct clearing_request *request)
{
    struct reply_slot *slot = request->slot;
    if (request->step == CLEARING_ASKED) {
        hold_fills(slot, request);
        if (!slot->replies || !send_held(slot, request))
            conclude(slot, false);
    } else {
        free(request);
    }
    reply_slot_answered(slot);
}
