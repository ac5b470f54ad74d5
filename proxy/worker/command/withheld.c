#include "worker/command/withheld.h"

#include "resp/reply.h"
#include "worker/command/keys/write.h"
#include "worker/command/keys/write_found.h"
#include "worker/upstream/upstream.h"

static const char doubt_text[] =
    "NESTGUARD cache started anew: what it may have forgotten to delete is being deleted, and the "
    "transaction may tell of it; nothing of it was done, try again";

/* With anything else, as for who may not use DISCARD, the transaction goes on, or there was none:
 * neither is followed any further. */
static void discarded(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (!request_take_answer(slot, reply, reply_is_ok(reply)))
        client_leave(client_of(slot->replies));
}

static const struct reply_slot_kind discarded_kind = {.on_cache = discarded,
                                                      .on_cache_failure = request_take_failure};

enum withheld_why { WITHHELD_DOUBTED, WITHHELD_NO_ROOM };

/* The number of the request says why. */
static void withheld(struct reply_slot *slot, unsigned index, struct span reply)
{
    if (reply_is_ok(reply))
        resp_write_error(reply_slot_output(slot), "%s",
                         index == WITHHELD_DOUBTED ? doubt_text : write_refusal);
    else
        discarded(slot, index, reply);
}

static const struct reply_slot_kind withheld_kind = {.on_cache = withheld,
                                                     .on_cache_failure = request_take_failure};

/* Behind a fence EXEC would wait to be written. With nothing under way there is nothing to wait
 * for. */
bool withheld_must_wait(const struct client *client, const struct request *request)
{
    const struct pinned *pinned = &client->pinned;
    return pinned->tells && pinned->states & PINNED_MULTI && client->replies.first &&
           request->command->effect == EFFECT_EXEC &&
           (pinned->fence || !upstream_is_up(client->upstream));
}

static void discard(struct client *client, enum withheld_why why)
{
    static const struct span command = {"*1\r\n$7\r\nDISCARD\r\n", 17};
    struct reply_slot *slot = reply_slot_open(&client->replies, &withheld_kind);
    upstream_send(client->upstream, slot, why, command);
    reply_slot_answered(slot);
    client_settle(client);
}

void withheld_discard(struct client *client, const struct request *request)
{
    request_forward_as(request, client, &discarded_kind);
    client_settle(client);
}

/* What it deletes is deleted now: of what was loaded since that was queued the keeper has not
 * heard.
 */
void withheld_execute(struct client *client, const struct request *request)
{
    if (client->pinned.tells && upstream_is_doubted(client->upstream)) {
        discard(client, WITHHELD_DOUBTED);
        return;
    }
    if (!write_find_queued(client))
        discard(client, WITHHELD_NO_ROOM);
    else if (client->pinned.clears || buffer_length(&client->pinned.deleted) ||
             buffer_length(&client->pinned.written))
        write_execute(client, request);
    else if (client->pinned.tells)
        request_forward_telling(request, client);
    else
        request_forward(request, client);
}
