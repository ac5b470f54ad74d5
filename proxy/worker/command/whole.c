/* The whole's slot is opened first, and waits for its parts. They stand behind it, where nobody
 * gets their replies: those go into the whole's as they come, in whatever order.
 */
#include "worker/command/whole.h"

#include "base/container_of.h"
#include "guard/guard.h"
#include "redis/topology/redis_map.h"
#include "resp/resp_number.h"
#include "worker/client/tracking.h"
#include "worker/command/join.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>
#include <string.h>

enum {
    PARTS_AT_ONCE = 512, /* under way of a command that is asked key by key */
    PARTS_MOST = 65536,  /* of one that cannot be asked in pieces */
    COPIES = 2,          /* a node's connection has one until it is written, one until answered */
    MUCH_BYTES = 4 * 1024 * 1024 /* of these, for all nodes */
};

/* ---- replies become one ---- */

static const struct reply_slot_kind whole_kinds[JOINS];

static bool is_list(const struct reply_slot *whole)
{
    return whole->kind == &whole_kinds[JOIN_LISTS];
}

/* These are asked of all at once, and never in pieces. */
static bool counts(const struct reply_slot *whole)
{
    return is_list(whole) || whole->kind == &whole_kinds[JOIN_ANY];
}

/* What is left to be asked goes on when few parts are under way; at the last of them at the latest,
 * also for a client that has gone. */
static void take_part(struct reply_slot *whole, struct span reply)
{
    if (whole->replies)
        join_part(whole, (enum command_join)(whole->kind - whole_kinds), reply);
    if (!counts(whole) && whole->pieces && whole->waiting <= PARTS_AT_ONCE / 2)
        piecemeal_resume(whole->pieces);
}

static void finish(struct reply_slot *whole)
{
    struct buffer reply = reply_slot_take_answers(whole);
    struct buffer *out = reply_slot_output(whole);
    if (is_list(whole) && !span_starts(buffer_span(&reply), "-"))
        resp_write_array(out, whole->joined);
    reply_slot_append(whole, out, buffer_span(&reply));
    buffer_finish(&reply);
}

#define KIND                                                                                       \
    {                                                                                              \
        .on_part_of = take_part, .finish = finish                                                  \
    }
static const struct reply_slot_kind whole_kinds[JOINS] = {KIND, KIND, KIND, KIND, KIND, KIND};
#undef KIND

/* ---- one becomes several ---- */

static void take_over(const struct whole *whole)
{
    whole->client->replies.whole = whole->slot;
    whole->client->replies.muted = true;
}

static void leave(const struct whole *whole)
{
    whole->client->replies.whole = NULL;
    whole->client->replies.muted = whole->muted;
}

struct whole whole_begin(struct client *client, enum command_join join)
{
    struct whole whole = {client, reply_slot_open(&client->replies, &whole_kinds[join]),
                          client->replies.muted};
    if (counts(whole.slot))
        whole.slot->joined = 0;
    else
        whole.slot->pieces = NULL;
    take_over(&whole);
    return whole;
}

void whole_end(struct whole *whole)
{
    leave(whole);
    reply_slot_answered(whole->slot);
}

static size_t copies_for_all(const struct client *client, const struct request *request)
{
    const struct redis_map *map = pool_map(client_pool(client));
    return map ? COPIES * redis_map_owners(map) * request->raw.length : 0;
}

/* Such copies stay until the nodes have taken them, though their client is cut off: what those who
 * have gone left there takes room, too. The eighth is piecemeal.h's. */
static bool has_room(const struct client *client, size_t bytes)
{
    size_t most = serving_config(client->serving)->max_client_memory / 8;
    return bytes <= MUCH_BYTES || pool_unanswered(client_pool(client)) + bytes <= most;
}

static void hold_copies(struct reply_slot *whole, size_t bytes)
{
    reply_slot_hold(whole, bytes);
    if (bytes > MUCH_BYTES)
        serving_arrived(whole->serving, bytes);
}

/* A cluster that nobody knows anything of fails it once. */
void whole_to_all(struct client *client, const struct request *request, enum command_join join)
{
    int node = pool_next(client_pool(client), NO_NODE);
    size_t bytes = copies_for_all(client, request);
    if (!has_room(client, bytes)) {
        resp_write_error(client_reply(client),
                         "NESTGUARD busy: too large to be sent to every node for now "
                         "(max_client_memory), try again later");
        return;
    }
    struct whole whole = whole_begin(client, join);
    hold_copies(whole.slot, bytes);
    do {
        client_go_to(client, node);
        if (vanishing_has_all(request))
            clearing_dispatch_to(client, request, node);
        else
            request_forward(request, client);
        node = node == NO_NODE ? NO_NODE : pool_next(client_pool(client), node);
    } while (node != NO_NODE);
    whole_end(&whole);
}

/* ---- key by key ---- */

static bool writes(const struct request *request)
{
    return request->command->kind == COMMAND_WRITE || request->command->kind == COMMAND_DELETE;
}

/* The name, a key, and what belongs to it. */
static void ask_for(struct client *client, const struct request *part, struct reply_slot *whole)
{
    client_go_to_key(client, part->arguments[1]);
    tracking_precede(client);
    if (!writes(part))
        request_forward(part, client);
    else if (write_dispatch(client, part) < 0)
        reply_slot_part(whole, span_of("-NESTGUARD busy: too many keys that no row is known for "
                                       "were written (max_hints), try again later\r\n"));
}

/* The words of a part follow its name. */
static struct request part_of(const struct request *request, const struct span *words, size_t step)
{
    struct request part = *request;
    part.arguments = words;
    part.count = 1 + step;
    part.is_inline = true; /* it is written by its words */
    part.raw = words[0];
    for (size_t i = 1; i < part.count; i++)
        part.raw.length += words[i].length;
    return part;
}

enum { STEPS_MAX = 2 }; /* words that belong to a key, with it */

/* More parts than may be under way at a time are asked for as others are answered: a million of
 * them would take a gigabyte. */
struct pieces {
    struct piecemeal piecemeal;
    struct request request;
    size_t step, left; /* words of a part, and in all */
    uint64_t map;      /* digest of the one by which the last were asked, */
    unsigned lanes;    /* and how many connections each node had */
    bool waits;        /* for all of them: these are others by now */
    const char *at, *end;
    struct span name;
    char bytes[]; /* the name, and behind it the words that are left, as they were sent */
};

/* The command was read before, and is well-formed. */
static struct span next_word(struct pieces *pieces)
{
    const char *word = pieces->at + 1; /* behind the marker */
    int64_t length = 0;
    resp_read_number(&word, pieces->end, &length);
    pieces->at = word + length + 2;
    return (struct span){word, (size_t)length};
}

static void ask_some(struct client *client, struct pieces *pieces)
{
    struct reply_slot *slot = pieces->piecemeal.slot;
    struct span words[1 + STEPS_MAX] = {pieces->name};
    for (unsigned asked = 0;
         asked < PARTS_AT_ONCE && slot->replies && pieces->left && slot->waiting <= PARTS_AT_ONCE;
         asked++) {
        for (size_t i = 0; i < pieces->step; i++)
            words[1 + i] = next_word(pieces);
        pieces->left -= pieces->step;
        struct request part = part_of(&pieces->request, words, pieces->step);
        ask_for(client, &part, slot);
    }
}

/* A key may be named twice, and what is under way for it is sent on from where it was: that would
 * come there behind what is asked for it by the map of now. */
static bool has_moved(struct pieces *pieces, const struct client *client)
{
    const struct pool *pool = client_pool(client);
    const struct redis_map *map = pool_map(pool);
    uint64_t map_before = pieces->map;
    unsigned lanes_before = pieces->lanes;
    pieces->map = map ? map->digest : 0;
    pieces->lanes = pool_lanes(pool);
    return pieces->map != map_before || pieces->lanes != lanes_before;
}

/* Nothing is asked for a client that has gone. Parts may have been answered at once: then none may
 * be left that would let it go on. */
static bool go_on(struct piecemeal *piecemeal)
{
    struct pieces *pieces = container_of(piecemeal, struct pieces, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (slot->replies) {
        struct client *client = client_of(slot->replies);
        const struct whole whole = {client, slot, client->replies.muted};
        pieces->waits |= has_moved(pieces, client);
        piecemeal->is_paused = pieces->waits && slot->waiting > 1; /* for parts, not this one */
        if (piecemeal->is_paused)
            return true;
        pieces->waits = false;
        reply_slot_drop_parts(slot);
        take_over(&whole);
        slot->serving->permission = permission_begin(slot->serving->view);
        ask_some(client, pieces);
        leave(&whole);
    }
    turn_worked(&slot->serving->turn, PARTS_AT_ONCE / 2);
    piecemeal->is_paused = slot->waiting > PARTS_AT_ONCE / 2;
    if (slot->replies && pieces->left)
        return true;
    slot->pieces = NULL;
    reply_slot_let_go(slot, piecemeal->bytes);
    return false;
}

/* An inline command's bytes were written over. Who is told of keys would have to be told at nodes
 * that are none yet. */
static bool may_have_pieces(const struct client *client, const struct request *request,
                            const struct command_way *way)
{
    return request->count - way->key > PARTS_AT_ONCE * way->step && !request->is_inline &&
           way->step <= STEPS_MAX && !tracking_is_on(client) &&
           piecemeal_has_room(client->serving, request->raw.length);
}

/* Behind it nothing is served before all of it is answered. */
static bool begin_pieces(struct client *client, const struct request *request,
                         const struct command_way *way)
{
    struct span name = request->arguments[0];
    const char *words =
        request->arguments[way->key - 1].at + request->arguments[way->key - 1].length;
    size_t rest = (size_t)(request->raw.at + request->raw.length - words) - 2;
    struct pieces *pieces = malloc(sizeof *pieces + name.length + rest);
    if (!pieces)
        return false;
    struct whole whole = whole_begin(client, way->join);
    *pieces = (struct pieces){.piecemeal = {.slot = whole.slot, .go_on = go_on},
                              .request = *request,
                              .step = way->step,
                              .left = request->count - way->key,
                              .name = {pieces->bytes, name.length}};
    memcpy(pieces->bytes, name.at, name.length);
    pieces->at = memcpy(pieces->bytes + name.length, words + 2, rest);
    pieces->end = pieces->at + rest;
    leave(&whole);
    whole.slot->pieces = &pieces->piecemeal;
    reply_slot_hold(whole.slot, rest);
    client_settle(client);
    piecemeal_begin(&pieces->piecemeal, rest);
    return true;
}

/* Who is refused has nothing done. */
static void ask_all(struct client *client, const struct request *request,
                    const struct command_way *way)
{
    if ((request->count - way->key) / way->step > PARTS_MOST) {
        resp_write_error(client_reply(client),
                         "NESTGUARD busy: too many keys for now, or for a client with CLIENT "
                         "TRACKING; send them in several commands");
        return;
    }
    struct whole whole = whole_begin(client, way->join);
    struct span words[1 + STEPS_MAX] = {request->arguments[0]};
    for (size_t i = way->key; i + way->step <= request->count; i += way->step) {
        for (size_t j = 0; j < way->step; j++)
            words[1 + j] = request->arguments[i + j];
        struct request part = part_of(request, words, way->step);
        ask_for(client, &part, whole.slot);
    }
    whole_end(&whole);
}

void whole_by_keys(struct client *client, const struct request *request,
                   const struct command_way *way)
{
    if (!may_have_pieces(client, request, way) || !begin_pieces(client, request, way))
        ask_all(client, request, way);
}

/* ---- SCAN ---- */

/*   the node's own cursor │ the node's rank │ the map's digest
 *           43 bits             20 bits, shared by the number of nodes
 *
 * It means the same to every worker, and to the guard behind a restart, though each has nodes
 * numbered in its own way. If a slot has moved since the beginning, its keys may be with a node
 * that was gone through already: then the digest is another (but once in so many times as there is
 * room for digests: a million, shared by the nodes), and SCAN is to begin again rather than to
 * leave them out. So it is when a node's place is another's: that one's cursors are others. Keys of
 * a slot that is on its way are where it is, as with any client of a cluster. Some clients know no
 * numbers from 2^63 on. */
enum { TAGS = 1 << 20 };
static const uint64_t cursor_end = (uint64_t)1 << 43; /* Redis': of a table of so many places */

/* How many digests there are; 0: no node is known. */
static unsigned digests(const struct redis_map *map)
{
    unsigned owners = map ? redis_map_owners(map) : 0;
    return owners ? TAGS / owners : 0;
}

/* Never 0 but for the first, of which a cursor comes only together with the node's own. */
static unsigned tag_of(const struct redis_map *map, unsigned rank)
{
    unsigned room = digests(map);
    return room ? rank * room + (unsigned)(map->digest % room) : 0;
}

/* -1: the cluster is not the one that the tag was made of. */
static int rank_in(const struct redis_map *map, unsigned tag)
{
    unsigned room = digests(map);
    if (!room || tag % room != map->digest % room || tag / room >= redis_map_owners(map))
        return -1;
    return (int)(tag / room);
}

static const char changed_text[] =
    "NESTGUARD cluster changed: keys may be elsewhere than when this SCAN began, begin again";

static bool read_cursor(struct span text, uint64_t *cursor)
{
    *cursor = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] < '0' || text.at[i] > '9' || *cursor > UINT64_MAX / 10 - 1)
            return false;
        *cursor = *cursor * 10 + (uint64_t)(text.at[i] - '0');
    }
    return text.length > 0;
}

/* "$3\r\n123\r\n" */
static bool cursor_in(struct span element, uint64_t *cursor)
{
    const char *line = element.length ? memchr(element.at, '\n', element.length) : NULL;
    size_t head = line ? (size_t)(line + 1 - element.at) : 0;
    if (!line || element.length < head + 2)
        return false;
    return read_cursor((struct span){line + 1, element.length - head - 2}, cursor);
}

/* `index` is the tag of the node's. At its end comes the next one's beginning. */
static void scan_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    char text[24];
    uint64_t cursor;
    if (reply.at[0] != '*' || resp_array_open(reply, &at) != 2 ||
        !cursor_in(resp_array_next(&at, end), &cursor)) {
        request_take_reply(slot, index, reply);
        return;
    }
    const struct redis_map *map = pool_map(client_pool(client_of(slot->replies)));
    struct buffer *out = reply_slot_output(slot);
    int rank = rank_in(map, index);
    if (rank < 0 || cursor >= cursor_end) {
        resp_write_error(out, "%s",
                         rank < 0 ? changed_text
                                  : "NESTGUARD unsupported: a node's cursor is too large");
        return;
    }
    if (cursor)
        cursor = cursor * TAGS + index;
    else if ((unsigned)rank + 1 < redis_map_owners(map))
        cursor = tag_of(map, (unsigned)rank + 1);
    resp_write_array(out, 2);
    snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    resp_write_bulk(out, text, strlen(text));
    reply_slot_append(slot, out, (struct span){at, (size_t)(end - at)});
}

static const struct reply_slot_kind scan_kind = {.on_cache = scan_reply,
                                                 .on_cache_failure = request_take_failure};

static void scan_node(struct client *client, const struct request *request, unsigned tag,
                      uint64_t cursor)
{
    char text[24];
    struct buffer bytes = {0};
    snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    resp_write_array(&bytes, request->count);
    for (size_t i = 0; i < request->count; i++) {
        struct span word = i == 1 ? span_of(text) : request->arguments[i];
        resp_write_bulk(&bytes, word.at, word.length);
    }
    const struct redis_map *map = pool_map(client_pool(client));
    client_go_to(client, redis_map_ranked(map, (unsigned)rank_in(map, tag)));
    struct reply_slot *slot = reply_slot_open(&client->replies, &scan_kind);
    upstream_send(client->upstream, slot, tag, buffer_span(&bytes));
    reply_slot_answered(slot);
    buffer_finish(&bytes);
}

void whole_scan(struct client *client, const struct request *request)
{
    struct pool *pool = client_pool(client);
    uint64_t cursor;
    if (request->count < 2 || !read_cursor(request->arguments[1], &cursor)) {
        client_go_to(client, pool_node_for(pool, client->id));
        request_forward(request, client); /* a node says best what is wrong with it */
        return;
    }
    const struct redis_map *map = pool_map(pool);
    unsigned tag = cursor ? (unsigned)(cursor % TAGS) : tag_of(map, 0);
    if (rank_in(map, tag) < 0)
        resp_write_error(client_reply(client), "%s", changed_text);
    else
        scan_node(client, request, tag, cursor / TAGS);
}
