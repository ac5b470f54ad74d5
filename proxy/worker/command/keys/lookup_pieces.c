/* A large MGET or EXISTS in pieces: lookup_many.h says what may happen between two of them. */
#include "worker/command/keys/lookup_many_internal.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "worker/client/tracking.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/upstream.h"

struct pieces {
    struct piecemeal piecemeal;
    size_t first; /* of the next piece */
    /* Keys of which there is no lookup yet, in the input that the slot has got. */
    size_t left;
    const char *at;
};

static void add_lookups(struct pieces *pieces)
{
    struct span keys[LOOKUPS_AT_ONCE];
    size_t count = pieces->left < LOOKUPS_AT_ONCE ? pieces->left : LOOKUPS_AT_ONCE;
    resp_measured_next(&pieces->at, keys, count);
    for (size_t i = 0; i < count; i++)
        reply_slot_add_lookup(pieces->piecemeal.slot, keys[i]);
    pieces->left -= count;
}

/* As dispatch_many() does for all: what there was room for then may be sent by now. */
static bool has_room(const struct client *client, const struct reply_slot *slot, struct range range)
{
    return upstream_has_room(client->upstream, lookup_many_bytes(slot, range));
}

/* The view of now decides. */
static bool go_on(struct piecemeal *piecemeal)
{
    struct pieces *pieces = container_of(piecemeal, struct pieces, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (!slot->replies)
        return false;
    struct serving *serving = slot->serving;
    struct client *client = client_of(slot->replies);
    add_lookups(pieces);
    struct range range = lookup_many_range(slot, pieces->first);
    if (!has_room(client, slot, range)) {
        reply_slot_starve(slot);
        return false;
    }
    serving->permission = permission_begin(serving->view);
    lookup_many_ask(client, slot, range, false);
    turn_worked(&serving->turn, range.end - range.first);
    pieces->first = range.end;
    return range.end < slot->lookup_count || pieces->left;
}

/* It may move on to another connection when this is answered, but not to another command. The keys
 * stay where they were read: that memory goes over to the slot. What CLIENT CACHING has asked for
 * is forgotten by then. */
void lookup_many_begin_pieces(struct client *client, const struct request *request,
                              struct reply_slot *slot)
{
    struct pieces *pieces = xmalloc(sizeof *pieces);
    struct span name = request->arguments[0];
    *pieces = (struct pieces){.piecemeal = {.slot = slot, .go_on = go_on},
                              .left = request->count - 1,
                              .at = name.at + name.length + 2};
    reply_slot_hold(slot, client->in.size);
    client_give_input(client, &slot->keys);
    client_settle(client);
    if (client->pinned.tracking.caching == CACHING_YES)
        tracking_invalidate(client);
    piecemeal_begin(&pieces->piecemeal, slot->gathered);
}

/* An inline command is none that could wait: its bytes were written over when it was parsed. */
bool lookup_many_has_pieces(const struct request *request)
{
    return request->count - 1 > LOOKUPS_AT_ONCE && !request->is_inline;
}

bool lookup_many_may_have_pieces(const struct client *client, const struct request *request)
{
    size_t bytes = client->in.size + request->count * sizeof(struct lookup);
    return lookup_many_has_pieces(request) && buffer_span(&client->in).at == request->raw.at &&
           piecemeal_has_room(client->serving, bytes);
}
