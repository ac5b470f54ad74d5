/* Why a client never keeps what it will not be told of:
 *
 *   One connection   What is read over it stands in the client's queue before what it tells later:
 *                    an invalidation goes before the oldest request of that connection, behind the
 *                    reply of its command if that has several, or behind everything.
 *   Lost, moved      "Everything" is said twice: at once, for what the client has, and behind all
 *                    that is under way, for what it is about to get.
 *   Missing          With BCAST a node may tell nothing for a while, since it cannot be reached:
 *                    when it can be, "everything" is said once more.
 */
#include "worker/client/tracking.h"

#include "base/clock.h"
#include "base/memory.h"
#include "redis/topology/redis_map.h"
#include "worker/client/pinned_room.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <errno.h>
#include <stdlib.h>

enum { RETRY_MS = 500 }; /* between attempts to reach nodes that are missing */

bool tracking_is_on(const struct client *client)
{
    return client->pinned.tracking.words.commands;
}

/* ---- what the client is told ---- */

/* A part of the first reply may have left. */
static const struct reply_slot *not_begun(const struct reply_slot *slot)
{
    return slot && slot->begun ? slot->next : slot;
}

/* RESP2 has no way to tell it. */
static void say_everything(struct client *client, const struct reply_slot *next)
{
    static const char everything[] = ">2\r\n$10\r\ninvalidate\r\n_\r\n";
    struct replies *replies = &client->replies;
    if (replies->resp3 && client->state < CLIENT_CLOSING && !replies_have_ended(replies))
        replies_push(replies, next, span_of(everything));
}

void tracking_invalidate(struct client *client)
{
    const struct reply_slot *first = client->replies.first;
    say_everything(client, not_begun(first));
    if (first && not_begun(first))
        say_everything(client, NULL);
}

/* Of a command that waits for something, and is the last: what comes meanwhile does not wait, too.
 */
static struct reply_slot *waiting_slot(const struct pinned *pinned)
{
    if (pinned->waiting)
        return pinned->wait_slot;
    return pinned->own ? upstream_waiting_slot(pinned->own) : NULL;
}

/* The connection may have answered for some keys of its command: an MGET's, or parts of a TOUCH. In
 * front of the command's reply, the client would forget a key before it is told of it, and keep
 * what it is told for good: nothing more is said of that key. Behind the reply it stands behind all
 * that the connection has answered; to be later than need be costs no more than to read again. Of a
 * DEL's own keys one Redis tells there, too. */
static bool may_have_answers(const struct reply_slot *slot)
{
    return slot->begun || slot->lookup_count > 1 || slot->whole;
}

/* Before the oldest request of the connection that it came by. With several connections, replies of
 * this one may be ready behind one that another owes: where nothing is under way on it, behind all
 * of them is the first place that is surely behind its own, but for a command that waits. */
static void push(struct client *client, const struct upstream *upstream, struct span bytes)
{
    const struct pinned *pinned = &client->pinned;
    bool has_several = pinned->tracking.count || pinned->listening;
    struct reply_slot *slot = upstream ? upstream_first_slot(upstream) : NULL;
    struct reply_slot *waits = waiting_slot(pinned);
    if (slot ? waits && slot->whole == waits : has_several)
        slot = waits;
    if (slot && has_several && may_have_answers(slot))
        replies_push_behind(&client->replies, slot->whole ? slot->whole : slot, bytes);
    else
        replies_push(&client->replies, slot, bytes);
}

/* The queue of a client that is about to be closed knows its slots no more. One that is paced has
 * asked for the replies that are held, but not for messages. */
void tracking_push(struct client *client, struct upstream *upstream, struct span bytes)
{
    if (client->state >= CLIENT_CLOSING || replies_have_ended(&client->replies))
        return;
    push(client, upstream, bytes);
    size_t most = serving_config(client->serving)->max_output;
    size_t waiting = client->replies.end == REPLIES_PACED ? replies_open(&client->replies)
                                                          : replies_waiting(&client->replies);
    if (waiting > most)
        client_drop(client);
}

/* ---- the connections ---- */

bool tracking_has(const struct client *client, const struct upstream *upstream)
{
    const struct pinned_track *track = pinned_track_of(&client->pinned, upstream);
    return track && (!track->outdated || client->pinned.own == upstream);
}

bool tracking_hears(const struct client *client, const struct upstream *upstream)
{
    const struct pinned_track *track = pinned_track_of(&client->pinned, upstream);
    return track && !track->outdated;
}

/* One that exists. */
static void take(struct client *client, struct upstream *upstream)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    struct pinned_track *track = pinned_track_of(&client->pinned, upstream);
    if (!track) {
        tracking->at = xrealloc(tracking->at, (tracking->count + 1) * sizeof *tracking->at);
        track = &tracking->at[tracking->count++];
    }
    *track = (struct pinned_track){.upstream = upstream};
}

static struct upstream *open_at(struct client *client, struct pool *pool, int node)
{
    const struct pinned_tracking_words *words = &client->pinned.tracking.words;
    struct upstream_options options = {.resp3 = client->replies.resp3,
                                       .name = client->self.name,
                                       .owner = client->pinned.tracking.owner,
                                       .client = client,
                                       .opening = buffer_span(&words->bytes),
                                       .opening_commands = words->commands};
    struct upstream *upstream = pool_own(pool, node, &options);
    pinned_count(client, 1);
    take(client, upstream);
    return upstream;
}

/* The client was led there last; but not by anything that is under way. */
static void drop(struct client *client, struct pinned_track *track)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    struct upstream *upstream = track->upstream;
    *track = tracking->at[--tracking->count];
    upstream_close(upstream);
    pinned_discount(client, 1);
    if (client->upstream == upstream)
        client->upstream = client_shared(client, client->replies.resp3);
}

static void drop_outdated(struct client *client)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    for (unsigned i = tracking->count; i > 0; i--) {
        struct pinned_track *track = &tracking->at[i - 1];
        if (track->outdated && track->upstream != client->pinned.own &&
            upstream_is_idle(track->upstream))
            drop(client, track);
    }
}

int tracking_open(struct client *client, int node)
{
    if (!tracking_is_on(client) || node == NO_NODE || client_track_to(client, node))
        return 0;
    struct pool *pool =
        client_pool(client); /* whose node it is; the last link to it may end here */
    drop_outdated(client);
    if (!pinned_make_room(client, 1))
        return -EBUSY;
    open_at(client, pool, node);
    return 0;
}

/* ---- on and off ---- */

static void outdate(struct client *client)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    for (unsigned i = 0; i < tracking->count; i++)
        tracking->at[i].outdated = true;
}

static void forget_words(struct pinned_tracking_words *words)
{
    buffer_finish(&words->bytes);
    *words = (struct pinned_tracking_words){0};
}

/* With BCAST prefixes add up; else the last command counts. */
static void keep_words(struct pinned_tracking *tracking)
{
    struct pinned_tracking_words *words = &tracking->words, *asked = &tracking->asked;
    struct span before = buffer_span(&words->bytes), said = buffer_span(&asked->bytes);
    if (!words->broadcast || !asked->broadcast) {
        forget_words(words);
        *words = *asked;
        *asked = (struct pinned_tracking_words){0};
    } else if (!memmem(before.at, before.length, said.at, said.length)) {
        buffer_append(&words->bytes, said.at, said.length);
        words->commands++;
    }
}

/* False: own_connections are used up. */
static bool open_missing(struct client *client, struct reply_slot *slot)
{
    static const struct span ping = {"*1\r\n$4\r\nPING\r\n", 14};
    struct pool *pool = client_pool(client);
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;) {
        if (client_track_to(client, node))
            continue;
        if (!pinned_make_room(client, 1))
            return false;
        struct upstream *upstream = open_at(client, pool, node);
        if (slot)
            upstream_send(upstream, slot, 1, ping);
    }
    return true;
}

/* Those that there were are by other words; nothing is under way there but this. */
void tracking_begin(struct client *client, struct reply_slot *slot)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    bool was_on = tracking_is_on(client);
    outdate(client);
    take(client, client->pinned.own);
    keep_words(tracking);
    tracking->caching = CACHING_UNSAID;
    if (was_on)
        tracking_invalidate(client);
    if (!tracking->words.broadcast)
        return;
    tracking->beginning = slot;
    if (!open_missing(client, slot))
        client_leave(client);
}

void tracking_end(struct client *client)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    outdate(client);
    forget_words(&tracking->words);
    tracking->caching = CACHING_UNSAID;
    tracking->unsettled = false;
}

/* The own one has gone over to the other protocol by itself. Of the cache before, none is opened
 * anew: it could not go on there, and nobody would tell it of what it reads elsewhere. */
void tracking_renew(struct client *client)
{
    if (!tracking_is_on(client))
        return;
    if (client_pool(client) != client->serving->pool) {
        client_leave(client);
        return;
    }
    bool has_own = tracking_has(client, client->pinned.own);
    outdate(client);
    if (has_own)
        take(client, client->pinned.own);
    client->pinned.tracking.unsettled = true;
    client->pinned.tracking.tried = 0;
    say_everything(client, NULL); /* HELLO's reply tells the client of the protocol */
}

void tracking_precede(struct client *client)
{
    static const char *const answers[] = {[CACHING_YES] = "YES", [CACHING_NO] = "NO"};
    enum pinned_caching caching = client->pinned.tracking.caching;
    if (caching == CACHING_UNSAID || !tracking_hears(client, client->upstream))
        return;
    const struct span words[] = {span_of("CLIENT"), span_of("CACHING"), span_of(answers[caching])};
    upstream_precede(client->upstream, words, 3);
}

/* ---- what happens to them ---- */

static void note_change(struct client *client)
{
    client->pinned.tracking.unsettled = true;
    tracking_invalidate(client);
}

void tracking_lose(struct client *client, struct upstream *upstream)
{
    struct pinned_track *track = pinned_track_of(&client->pinned, upstream);
    if (!track)
        return;
    bool is_elsewhere = upstream_route(upstream) != client->serving->route;
    bool counts = !track->outdated;
    drop(client, track);
    if (!counts)
        return;
    if (is_elsewhere)
        client_leave(client);
    else
        note_change(client);
}

void tracking_is_up(struct client *client, struct upstream *upstream)
{
    const struct pinned_tracking *tracking = &client->pinned.tracking;
    if (tracking->words.broadcast && !tracking->beginning && tracking_hears(client, upstream))
        tracking_invalidate(client);
}

/* What goes over to it with CLIENT CACHING has left that behind. What is bound to the own
 * connection stays there: an EXEC or DISCARD has ended the state before what it ends is answered,
 * and a SSUBSCRIBE has not begun it yet; they settle. */
struct upstream *tracking_elsewhere(struct client *client, struct upstream *upstream, int node,
                                    bool *asks)
{
    const struct pinned_footing *footing = &client->pinned.footing;
    if (!tracking_is_on(client) && footing->elsewhere) /* else the client has one there already */
        return footing->elsewhere(client, upstream, node, asks);
    bool has_state =
        upstream == client->pinned.own && (pinned_is_held(&client->pinned) || client->settling);
    if (!pinned_track_of(&client->pinned, upstream) || has_state || tracking_open(client, node) < 0)
        return NULL;
    if (client->pinned.tracking.words.opts_in)
        say_everything(client, NULL);
    return client_track_to(client, node);
}

void tracking_follow(struct client *client)
{
    if (!tracking_is_on(client))
        return;
    client->pinned.tracking.tried = 0;
    note_change(client);
}

void tracking_read(struct client *client, bool wanted)
{
    const struct pinned_tracking *tracking = &client->pinned.tracking;
    for (unsigned i = 0; i < tracking->count; i++)
        if (tracking->at[i].upstream != client->pinned.own)
            upstream_read(tracking->at[i].upstream, wanted);
}

static void settle(struct client *client)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    const struct pool *pool = client_pool(client);
    tracking->unsettled = false;
    for (unsigned i = 0; i < tracking->count; i++)
        if (!redis_map_owns(pool_map(pool), upstream_node(tracking->at[i].upstream)))
            tracking->at[i].outdated = true;
    if (tracking->words.broadcast && !open_missing(client, NULL))
        client_leave(client);
}

void tracking_check(struct client *client, uint64_t now)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    if (client->state >= CLIENT_CLOSING)
        return;
    for (unsigned i = 0; i < tracking->count; i++)
        upstream_check_progress(tracking->at[i].upstream);
    const struct pool *pool = client_pool(client);
    drop_outdated(client);
    client_leave_pool(client, pool);
    if (!tracking_is_on(client) || !tracking->unsettled || now - tracking->tried < RETRY_MS)
        return;
    tracking->tried = now;
    settle(client);
}

/* As with state on its own connection: it keeps to the cache that was, for as long as that is
 * allowed. */
void tracking_move(struct client *client, bool late)
{
    const struct pinned_tracking *tracking = &client->pinned.tracking;
    bool is_elsewhere = client_pool(client) != client->serving->pool;
    if (tracking_is_on(client) && (!tracking->count || (late && is_elsewhere)))
        client_leave(client);
}

void tracking_finish(struct client *client)
{
    struct pinned_tracking *tracking = &client->pinned.tracking;
    for (unsigned i = 0; i < tracking->count; i++) {
        upstream_close(tracking->at[i].upstream);
        pinned_discount(client, 1);
    }
    free(tracking->at);
    forget_words(&tracking->words);
    forget_words(&tracking->asked);
    *tracking = (struct pinned_tracking){0};
}
