/* Why nothing overtakes anything:
 *
 *   There    What the client sent before may still be under way on a shared connection, and what it
 *            did must be done before the first command runs on the own one. So that one waits: a
 *            fence stands in the queue of replies, and the own connection writes nothing before the
 *            fence is at the queue's head. By then every earlier command has its answer.
 *   Back     The client goes back when none of its commands is under way at all.
 *   Beside   What the cache sends unasked (messages, invalidations) came between two replies, and
 *            stands between the same two in the client's queue: before the slot of the oldest
 *            command without a reply.
 */
#include "worker/client/pinned.h"

#include "base/clock.h"
#include "resp/pubsub.h"
#include "worker/client/listening.h"
#include "worker/client/queued_writes.h"
#include "worker/client/strangers.h"
#include "worker/client/tracking.h"
#include "worker/client/waits.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

enum {
    KEEP_MS = 1000,           /* a client that needed a connection may soon do so again */
    PAUSE_BYTES = 1024 * 1024 /* waiting for the client; then the cache has to wait, too */
};

static const struct upstream_owner owner;

static const struct reply_slot_kind fence_kind = {0};

/* ---- there and back ---- */

static struct upstream_options options_of(struct client *client)
{
    return (struct upstream_options){.resp3 = client->replies.resp3,
                                     .name = client->self.name,
                                     .owner = &owner,
                                     .client = client};
}

static void begin(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    struct upstream_options options = options_of(client);
    options.route = upstream_route(client->upstream);
    options.node = upstream_node(client->upstream);
    options.nowhere = upstream_is_nowhere(client->upstream);
    pinned->tracking.owner = &owner;
    pinned->own = client->upstream = upstream_create(client->serving, &options);
    pinned->used = clock_ms();
    pinned_count(client, 1);
    if (client->replies.first) {
        pinned->fence = reply_slot_open(&client->replies, &fence_kind);
        upstream_hold(pinned->own, true);
    }
}

void pinned_begin_at(struct client *client, int node)
{
    struct upstream *before = client->pinned.own;
    struct upstream_options options = options_of(client);
    client->pinned.own = client->upstream = pool_own(client_pool(client), node, &options);
    client->pinned.used = clock_ms();
    if (pinned_track_of(&client->pinned, before))
        pinned_count(client, 1); /* the other one's place is given back with what tracked by it */
    else
        upstream_close(before);
}

int pinned_begin(struct client *client)
{
    client->pinned.used = clock_ms();
    pinned_end_login(client);
    if (client->pinned.own)
        return 0;
    if (tracking_has(client, client->upstream)) {
        client->pinned.own = client->upstream; /* whatever was sent to its node went over it */
        return 0;
    }
    if (!pinned_make_room(client, 1))
        return pinned_refuse_busy(client);
    begin(client);
    return 0;
}

int pinned_begin_state(struct client *client)
{
    int status = pinned_begin(client);
    if (status < 0)
        client_leave(client);
    return status;
}

/* Where no password is asked everybody is authenticated, and nobody has shown anything. */
static bool is_unknown(const struct client *client)
{
    return !client->authenticated || !serving_config(client->serving)->password;
}

int pinned_begin_login(struct client *client)
{
    bool was_login = client->pinned.is_login;
    bool begins = !client->pinned.own && is_unknown(client);
    if (begins && !pinned_make_login_room(client))
        return pinned_refuse_busy(client);
    int status = pinned_begin(client);
    if (!status && (begins || was_login))
        pinned_count_login(client);
    return status;
}

/* In a cluster it is among those who take much (client_follow_host()). One that comes from there
 * may have a MULTI held back, and an own connection would be taken for one that has it. Of what is
 * settled before the next command more may be sent (piecemeal.h): over the own connection it would
 * wait for the fence, and the fence for its reply. */
static bool is_to_be_isolated(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    bool has_pieces = client->settling && client->replies.first;
    return client->replies.slow && !pinned->own && !pool_is_cluster(client_pool(client)) &&
           !(pinned->states & PINNED_MULTI) && !has_pieces && client->state == CLIENT_OPEN;
}

/* Whoever reads so slowly that others who share a connection would feel it, shares none. */
static void isolate(struct client *client)
{
    if (pinned_make_room(client, 1))
        begin(client);
    else
        client_drop(client);
}

/* A slow reader with nothing to read for as long as others keep theirs is like any other again. */
static void end_unused(struct client *client, uint64_t now)
{
    struct pinned *pinned = &client->pinned;
    if (client->replies.slow && replies_waiting(&client->replies))
        pinned->used = now;
    if (now - pinned->used <= KEEP_MS)
        return;
    client->replies.slow = false;
    pinned_end(client);
}

/* The same of one without a connection of its own, from when it was led to those who take much. */
static void forgive(struct client *client, uint64_t now)
{
    struct pinned *pinned = &client->pinned;
    if (!client->takes_much || client->replies.first || replies_waiting(&client->replies))
        pinned->used = now;
    client->replies.slow = now - pinned->used <= KEEP_MS;
}

void pinned_reset(struct client *client)
{
    introduction_end(&client->self, false);
    client->no_evict = false;
    client->authenticated = !serving_config(client->serving)->password;
    strangers_review(client);
    client->replies.resp3 = client->replies.muted = client->replies.no_fallback = false;
    client->reply_off = false;
    client->pinned.states = 0;
    tracking_end(client);
    listening_forget(client);
    buffer_finish(&client->pinned.late);
    queued_forget(client);
    client->pinned.redirect = 0;
    redirection_end(&client->pinned.redirection);
    client->pinned.channels = client->pinned.patterns = client->pinned.shards = 0;
    if (client->pinned.own)
        pinned_end(client);
    else
        client->upstream = client_shared(client, false);
}

void pinned_flush(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    if (pinned_reach(client, &pinned->fence))
        upstream_hold(pinned->own, false);
    waits_flush(client);
    pinned_note_idle(client);
}

/* By what can leave alone, unless all fills wait for a reply. What is held stands behind the head,
 * whose reply may be due on one of these connections: not read, neither would ever leave. It is of
 * what was sent before it became much (REPLIES_PACED). */
void pinned_pace(struct client *client)
{
    const struct replies *replies = &client->replies;
    bool wanted =
        buffer_length(&replies->out) + replies->sending < PAUSE_BYTES || client->pinned.clearings;
    if (client->pinned.own)
        upstream_read(client->pinned.own, wanted);
    tracking_read(client, wanted);
    listening_read(client, wanted);
}

void pinned_check(struct client *client, uint64_t now)
{
    struct pinned *pinned = &client->pinned;
    if (is_to_be_isolated(client))
        isolate(client);
    else if (client->replies.slow && !pinned->own)
        forgive(client, now);
    waits_check(client);
    if (!pinned->own || client->state >= CLIENT_CLOSING)
        return;
    upstream_check_progress(pinned->own);
    pinned_note_idle(client); /* what left it so may have been another client that went */
    if (pinned_is_idle(client))
        end_unused(client, now);
    else
        pinned->used = now;
}

void pinned_follow(struct client *client, bool late)
{
    struct upstream *own = client->pinned.own;
    if (late)
        waits_leave(client);
    tracking_move(client, late);
    listening_move(client, late);
    if (!own || upstream_route(own) == client->serving->route || client->state >= CLIENT_CLOSING)
        return;
    if (pinned_is_idle(client))
        pinned_end(client);
    else if (late)
        upstream_give_up(own, "the cache is elsewhere now");
}

/* The client is about to be freed: it goes back to no shared connection, as pinned_end() would have
 * it. */
void pinned_finish(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned_answer_fence(pinned);
    waits_finish(client);
    buffer_finish(&pinned->late);
    queued_forget(client);
    buffer_finish(&pinned->asked.text);
    if (pinned->own)
        pinned_give_back(client);
    tracking_finish(client);
    redirection_end(&pinned->redirection);
    redirection_end(&pinned->asked_redirection);
    listening_forget(client);
}

bool pinned_is_blocked(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    return pinned->waiting || (pinned->own && upstream_is_waiting(pinned->own));
}

bool pinned_waits(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    const unsigned unasked = PINNED_SUBSCRIBED | PINNED_MONITOR | PINNED_RELAY | PINNED_UPLOAD;
    return pinned_is_blocked(client) || pinned->states & PINNED_LISTENS ||
           (pinned->own && pinned->states & unasked);
}

/* Its state went with it, and nobody can bring that back; without any, what was under way did. */
static void lost(struct client *client, struct upstream *upstream)
{
    bool is_own = client->pinned.own == upstream;
    if (is_own && pinned_is_held(&client->pinned)) {
        client_leave(client);
        return;
    }
    if (is_own)
        pinned_end(client);
    tracking_lose(client, upstream);
    if (client->replies.first) /* the shared one may be another than before */
        client_settle(client);
}

/* ---- what comes unasked ---- */

unsigned pinned_subscriptions(const struct pinned *pinned, const char *name)
{
    if (*name == 'P')
        return pinned->patterns;
    return *name == 'S' ? pinned->shards : pinned->channels;
}

/* The count in a message is that of channels and patterns together, or of shard channels. */
static void take_count(struct pinned *pinned, const struct pubsub_message *message)
{
    if (message->family == PUBSUB_CHANNEL)
        pinned->channels = message->count - pinned->patterns;
    else if (message->family == PUBSUB_PATTERN)
        pinned->patterns = message->count - pinned->channels;
    else
        pinned->shards = message->count;
    if (pinned->channels || pinned->patterns || pinned->shards)
        pinned->states |= PINNED_SUBSCRIBED;
    else
        pinned->states &= ~(unsigned)PINNED_SUBSCRIBED;
}

/* Commands before it may still be without a reply; what comes is theirs, then. */
static bool is_subscribing(const struct pinned *pinned)
{
    return pinned->awaited && upstream_next_slot(pinned->own) == pinned->subscribing;
}

/* The last of the messages that answer a SUBSCRIBE is its reply; those before it go beside, and so
 * does what one server sends by itself. (A cluster's subscriptions are listening.h's.) */
static bool takes_confirmation(struct client *client, const struct pubsub_message *message,
                               struct span frame)
{
    struct pinned *pinned = &client->pinned;
    bool asked = is_subscribing(pinned);
    take_count(pinned, message);
    if (asked && --pinned->awaited == 0)
        return false;
    tracking_push(client, pinned->own, frame);
    return true;
}

/* MONITOR's lines begin with the time: no reply does. */
static bool is_monitored(const struct pinned *pinned, struct span frame)
{
    return pinned->states & PINNED_MONITOR && frame.at[0] == '+' && frame.at[1] >= '0' &&
           frame.at[1] <= '9';
}

/* Confirmations first, which may be a reply; then what comes unasked; what is left is the oldest
 * request's. */
static bool takes_own(struct client *client, struct span frame)
{
    struct pinned *pinned = &client->pinned;
    struct pubsub_message message = {.kind = PUBSUB_NONE};
    bool subscribing = is_subscribing(pinned);
    bool subscribes = pinned->states & PINNED_SUBSCRIBED || subscribing;
    if (frame.at[0] == '>' || (frame.at[0] == '*' && subscribes && !client->replies.resp3))
        message = pubsub_read(frame);
    if (message.kind == PUBSUB_CONFIRMATION)
        return takes_confirmation(client, &message, frame);
    if (pinned->states & PINNED_RELAY || frame.at[0] == '>' || message.kind == PUBSUB_MESSAGE ||
        is_monitored(pinned, frame)) {
        tracking_push(client, pinned->own, frame);
        return true;
    }
    if (frame.at[0] == '-' && subscribing)
        pinned->awaited = 0; /* the whole SUBSCRIBE was refused */
    return false;
}

/* On one that it only tracks by, invalidations come. */
static bool takes(struct client *client, struct upstream *upstream, struct span frame)
{
    if (upstream == client->pinned.own)
        return takes_own(client, frame);
    if (frame.at[0] == '>' && tracking_hears(client, upstream))
        tracking_push(client, upstream, frame);
    return frame.at[0] == '>';
}

/* Messages or invalidations are waited for. A transaction would count a PING, also one whose EXEC
 * is yet to be sent; CLIENT CACHING would be taken as said of it; and what is passed on as it is,
 * or in a way that is not followed, has no place for one. */
static bool may_ping(const struct client *client, const struct upstream *upstream)
{
    const unsigned hears = PINNED_SUBSCRIBED | PINNED_TRACKING;
    const unsigned closed =
        PINNED_MULTI | PINNED_MONITOR | PINNED_ALTERED | PINNED_RELAY | PINNED_UPLOAD | PINNED_SKIP;
    unsigned states = client->pinned.states;
    if (upstream != client->pinned.own)
        return tracking_hears(client, upstream);
    bool is_told = states & hears || redirection_is_used(client->pinned.redirected);
    return is_told && !(states & closed) && !client->replies.first && !client->pinned.caching;
}

static const struct upstream_owner owner = {.takes = takes,
                                            .lost = lost,
                                            .up = tracking_is_up,
                                            .elsewhere = tracking_elsewhere,
                                            .may_ping = may_ping};
