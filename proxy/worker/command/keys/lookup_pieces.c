/* A large MGET or EXISTS in pieces: lookup_many.h says what may happen between two of them. */
#include "worker/command/keys/lookup_many_internal.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "worker/client/footing.h"
#include "worker/client/tracking.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/upstream.h"

static const char no_memory[] = "NESTGUARD out of memory";

enum { SEARCHED_AT_ONCE = 4096 }; /* of the keys, which takes some 50 us */

/* Keys in the input that the slot has got. */
struct keys_left {
    const char *at;
    size_t count;
};

struct pieces {
    struct piecemeal piecemeal;
    const struct reply_slot_kind *kind; /* of a command with a guarded key */
    struct keys_left unsearched;        /* for one */
    struct keys_left left;              /* of which there is no lookup yet */
    size_t first;                       /* of the next piece */
};

/* Takes the next of them, up to `most`; returns how many. */
static size_t take_keys(struct keys_left *left, struct span *keys, size_t most)
{
    size_t count = left->count < most ? left->count : most;
    resp_measured_next(&left->at, keys, count);
    left->count -= count;
    return count;
}

static void add_lookups(struct pieces *pieces)
{
    struct span keys[LOOKUPS_AT_ONCE];
    size_t count = take_keys(&pieces->left, keys, LOOKUPS_AT_ONCE);
    for (size_t i = 0; i < count; i++)
        reply_slot_add_lookup(pieces->piecemeal.slot, keys[i]);
}

/* As dispatch_many() does for all: what there was room for then may be sent by now. */
static bool has_room(const struct client *client, const struct reply_slot *slot, struct range range)
{
    return upstream_has_room(client->upstream, lookup_many_bytes(slot, range));
}

/* The view of now decides. */
static bool ask_next(struct piecemeal *piecemeal)
{
    struct pieces *pieces = container_of(piecemeal, struct pieces, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (!slot->replies)
        return false;
    struct serving *serving = slot->serving;
    struct client *client = client_of(slot->replies);
    add_lookups(pieces);
    struct range range = lookup_many_range(slot, pieces->first);
    footing_lead(client, slot->lookups[range.first].key);
    if (!has_room(client, slot, range)) {
        reply_slot_starve(slot);
        return false;
    }
    serving->permission = permission_begin(serving->view);
    lookup_many_ask(client, slot, range, false);
    turn_worked(&serving->turn, range.end - range.first);
    pieces->first = range.end;
    return range.end < slot->lookup_count || pieces->left.count;
}

/* ---- whether any key is guarded ---- */

static bool finds_guarded(struct pieces *pieces)
{
    const struct serving *serving = pieces->piecemeal.slot->serving;
    size_t most = SEARCHED_AT_ONCE;
    struct span keys[LOOKUPS_AT_ONCE];
    while (most && pieces->unsearched.count) {
        size_t count = take_keys(&pieces->unsearched, keys, LOOKUPS_AT_ONCE);
        for (size_t i = 0; i < count; i++)
            if (guard_match(serving_config(serving), keys[i]) != NOT_GUARDED)
                return true;
        most -= LOOKUPS_AT_ONCE;
    }
    return false;
}

static bool begin_lookups(struct pieces *pieces)
{
    struct reply_slot *slot = pieces->piecemeal.slot;
    const struct client *client = client_of(slot->replies);
    size_t most = slot->gathered + 3 * RESP_HEADER_ROOM * pieces->left.count;
    if (!reply_slot_try_lookup_places(slot, pieces->left.count) ||
        !upstream_has_room(client->upstream, most)) {
        slot->kind->on_cache_failure(slot, 0, no_memory);
        return false;
    }
    slot->kind = pieces->kind;
    pieces->piecemeal.go_on = ask_next;
    return ask_next(&pieces->piecemeal);
}

/* It is the cache's alone, which gets it as it came. */
static void forward(struct pieces *pieces)
{
    struct reply_slot *slot = pieces->piecemeal.slot;
    struct client *client = client_of(slot->replies);
    struct span key;
    take_keys(&pieces->left, &key, 1);
    footing_lead(client, key);
    if (!upstream_try_pour(client->upstream, slot, 0, &slot->keys))
        slot->kind->on_cache_failure(slot, 0, no_memory);
    buffer_finish(&slot->keys);
    reply_slot_let_go(slot, slot->gathered);
}

static bool search(struct piecemeal *piecemeal)
{
    struct pieces *pieces = container_of(piecemeal, struct pieces, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (!slot->replies)
        return false;
    if (finds_guarded(pieces))
        return begin_lookups(pieces);
    turn_worked(&slot->serving->turn, SEARCHED_AT_ONCE);
    if (!pieces->unsearched.count)
        forward(pieces);
    return pieces->unsearched.count;
}

/* ---- the beginning ---- */

static size_t bytes_of(const struct client *client, const struct request *request)
{
    return client->in.size + request->count * sizeof(struct lookup);
}

/* It may move on to another connection when this is answered, but not to another command. The keys
 * stay where they were read: that memory goes over to the slot. */
static void begin(struct client *client, const struct request *request, const struct pieces *begun)
{
    struct pieces *pieces = xmalloc(sizeof *pieces);
    struct span name = request->arguments[0];
    *pieces = *begun;
    pieces->left = (struct keys_left){name.at + name.length + 2, request->count - 1};
    pieces->unsearched = pieces->left;
    reply_slot_hold(begun->piecemeal.slot, client->in.size);
    client_give_input(client, &begun->piecemeal.slot->keys);
    client_settle(client);
    piecemeal_begin(&pieces->piecemeal, bytes_of(client, request));
}

/* What CLIENT CACHING has asked for is forgotten before the last piece. */
void lookup_many_begin_pieces(struct client *client, const struct request *request,
                              struct reply_slot *slot)
{
    begin(client, request, &(struct pieces){.piecemeal = {.slot = slot, .go_on = ask_next}});
    if (client->pinned.tracking.caching == CACHING_YES)
        tracking_invalidate(client);
}

void lookup_many_begin_search(struct client *client, const struct request *request,
                              const struct reply_slot_kind *kind)
{
    struct reply_slot *slot = request_open(client);
    begin(client, request,
          &(struct pieces){.piecemeal = {.slot = slot, .go_on = search}, .kind = kind});
}

bool lookup_many_has_pieces(const struct request *request)
{
    return request->count - 1 > LOOKUPS_AT_ONCE && !request->is_inline;
}

bool lookup_many_may_have_pieces(const struct client *client, const struct request *request)
{
    return lookup_many_has_pieces(request) && buffer_span(&client->in).at == request->raw.at &&
           piecemeal_has_room(client->serving, bytes_of(client, request));
}
