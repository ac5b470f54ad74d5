/* Nothing is stored that can be derived: whether a client is read from follows from what is under
 * way for it (client_wants_input), and so does when a leaving one is closed (connection.c).
 *
 * A client that is not read from fills its socket and then has to wait: that is all the flow
 * control there is.
 */
#include "worker/client/client.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "redis/topology/redis_place.h"
#include "resp/resp.h"
#include "worker/upstream/pool.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    MAX_COMMANDS = 1024,       /* of one client under way, or loads; then it is not read from */
    PAUSE_BYTES = 1024 * 1024, /* replies waiting; likewise */
    KEEP_BYTES = 16 * 1024,    /* memory that an idle client keeps */
};

/* The replies live inside their client. */
struct client *client_of(struct replies *replies)
{
    return container_of(replies, struct client, replies);
}

/* ---- what it has told of itself ---- */

void introduction_set(char **what, char *text)
{
    free(*what);
    *what = text;
}

void introduction_end(struct introduction *self, bool all)
{
    introduction_set(&self->name, NULL);
    introduction_set(&self->user, NULL);
    introduction_set(&self->asked, NULL);
    introduction_set(&self->asked_name, NULL);
    if (!all)
        return;
    introduction_set(&self->library, NULL);
    introduction_set(&self->library_version, NULL);
}

/* ---- its life ---- */

/* For each state, the states that may follow it, a bit each. */
void client_set_state(struct client *client, enum client_state state)
{
    static const unsigned allowed[] = {
        [CLIENT_SECURING] = 1u << CLIENT_OPEN | 1u << CLIENT_LEAVING | 1u << CLIENT_CLOSING,
        [CLIENT_OPEN] = 1u << CLIENT_LEAVING | 1u << CLIENT_CLOSING,
        [CLIENT_LEAVING] = 1u << CLIENT_CLOSING,
        [CLIENT_CLOSING] = 1u << CLIENT_CLOSED,
        [CLIENT_CLOSED] = 0};
    assert(allowed[client->state] & 1u << state);
    (void)allowed;
    client->state = state;
}

static void mark_dirty(struct client *client)
{
    turn_add(&client->serving->turn, &client->output_task);
}

void client_close(struct client *client)
{
    if (client->state >= CLIENT_CLOSING)
        return;
    client_set_state(client, CLIENT_CLOSING);
    replies_abandon(&client->replies);
    mark_dirty(client);
}

void client_drop(struct client *client)
{
    counter_add(&client->serving->counters.clients_dropped, client->state < CLIENT_CLOSING);
    client_close(client);
}

void client_leave(struct client *client)
{
    if (client->state >= CLIENT_LEAVING)
        return;
    client_set_state(client, CLIENT_LEAVING);
    mark_dirty(client);
}

/* One that is read from is seen to when its replies leave, if something of its input waited. */
void client_resume(struct client *client)
{
    if (!client->reading)
        mark_dirty(client);
}

void client_settle(struct client *client)
{
    client->settling = true;
}

struct buffer *client_reply(struct client *client)
{
    return replies_ready(&client->replies);
}

void client_answer(struct client *client, const char *error)
{
    struct buffer *out = client_reply(client);
    if (error)
        resp_write_error(out, "%s", error);
    else
        resp_write_status(out, "OK");
}

/* ---- connections to the cache ---- */

struct upstream *client_shared(struct client *client, bool resp3)
{
    struct pool *pool = client->serving->pool;
    return pool_shared(pool, pool_node_for(pool, client->id), resp3, client_lane(client));
}

bool client_needs_own(const struct client *client)
{
    const struct upstream *own = client->pinned.own;
    return own && (pinned_is_held(&client->pinned) || !upstream_is_idle(own));
}

static bool is_meant(const struct client *client, const struct upstream *shared)
{
    if (!client_needs_own(client))
        return false;
    const struct redis_place *a = upstream_node(client->pinned.own), *b = upstream_node(shared);
    return a && b && redis_place_equal(a, b);
}

struct pool *client_pool(const struct client *client)
{
    const struct upstream *own = client->pinned.own;
    if (!own && client->pinned.tracking.count)
        own = client->pinned.tracking.at[0].upstream;
    if (!own)
        own = client->pinned.hears;
    return own ? upstream_route(own)->pool : client->serving->pool;
}

void client_leave_pool(struct client *client, const struct pool *before)
{
    if (client_pool(client) != before)
        client_reroute(client);
}

struct upstream *client_track_to(const struct client *client, int node)
{
    const struct pinned_tracking *tracking = &client->pinned.tracking;
    const struct redis_place *place = pool_place(client_pool(client), node);
    for (unsigned i = 0; place && i < tracking->count; i++) {
        const struct redis_place *there = upstream_node(tracking->at[i].upstream);
        if (!tracking->at[i].outdated && there && redis_place_equal(place, there))
            return tracking->at[i].upstream;
    }
    return NULL;
}

void client_go_to(struct client *client, int node)
{
    struct pool *pool = client_pool(client);
    struct upstream *track = client->pinned.tracking.count ? client_track_to(client, node) : NULL;
    struct upstream *shared =
        track ? track : pool_shared(pool, node, client->replies.resp3, client_lane(client));
    client->upstream = !track && is_meant(client, shared) ? client->pinned.own : shared;
}

void client_go_to_key(struct client *client, struct span key)
{
    client_go_to(client, pool_node_of(client_pool(client), key));
    client_go_beside(client);
}

/* The next command may find the connection up again, and would overtake this one. */
void client_go_beside(struct client *client)
{
    struct upstream *beside = upstream_beside(client->upstream);
    if (beside == client->upstream)
        return;
    client->upstream = beside;
    client_settle(client);
}

void client_reroute(struct client *client)
{
    const struct upstream *before = client->upstream;
    client->upstream =
        client->pinned.own ? client->pinned.own : client_shared(client, client->replies.resp3);
    bool others = pool_is_cluster(client_pool(client)) || client->upstream != before;
    if (client->replies.first && others)
        client_settle(client);
}

/* Others stand behind its replies: in this worker, or at the cache. */
static bool has_others(const struct client *client)
{
    return atomic_load_explicit(client->clients->total, memory_order_relaxed) >
           client->host->clients;
}

/* So are slow readers in a cluster: what they ask goes to many nodes, and a connection of their own
 * (pinned_check()) leads to one. */
static bool belongs_apart(const struct client *client)
{
    return host_takes_much(client->host) ||
           (client->replies.slow && pool_is_cluster(client->serving->pool));
}

void client_follow_host(struct client *client)
{
    /* What it has settled for may go to the cache later on, in pieces or when the keeper agrees. */
    if (client->state >= CLIENT_CLOSING || (client->settling && client->replies.first))
        return;
    bool much = belongs_apart(client) && has_others(client) &&
                pool_takes_much(client->serving->pool, client->replies.resp3, client->takes_much);
    if (much == client->takes_much)
        return;
    client->takes_much = much;
    client->pinned.used = clock_ms(); /* for so long it stays, if it is for that it is slow */
    client_reroute(client);
}

void client_speak(struct client *client, bool resp3)
{
    client->replies.resp3 = resp3;
    if (!client->pinned.own)
        client->upstream = client_shared(client, resp3);
}

/* ---- input ---- */

/* While nothing is under way, as mostly, only what the client has not read yet counts. */
static inline bool wants_input(const struct client *client)
{
    const struct replies *replies = &client->replies;
    if (client->state != CLIENT_OPEN || replies->end != REPLIES_OPEN ||
        upstream_is_congested(client->upstream))
        return false;
    if (!replies->first)
        return buffer_length(&replies->out) + replies->sending < PAUSE_BYTES;
    return !client->settling && replies->commands < MAX_COMMANDS &&
           replies->to_load_count < MAX_COMMANDS && replies_waiting(replies) < PAUSE_BYTES;
}

bool client_wants_input(const struct client *client)
{
    return wants_input(client);
}

/* Fresh input is where the kernel put it; input that came while the client had too much under way,
 * or that began a command, is kept. There is never both. */
struct span client_input(const struct client *client)
{
    struct span input = client->fresh.length ? client->fresh : buffer_span(&client->in);
    if (!input.length || input.length < client->need || !wants_input(client))
        input.length = 0;
    return input;
}

void client_keep_input(struct client *client)
{
    buffer_append(&client->in, client->fresh.at, client->fresh.length);
    client->fresh.length = 0;
}

bool client_has_much(const struct client *client)
{
    return buffer_length(&client->in) > LITTLE_INPUT;
}

void client_queue_input(struct client *client)
{
    struct turn *turn = &client->serving->turn;
    if (client_has_much(client))
        turn_line_up(turn, &client->input_task);
    else
        turn_add(turn, &client->input_task);
}

void client_give_input(struct client *client, struct buffer *heir)
{
    client->heir = heir;
}

/* What stands behind was read with it: little. So is what has been written to the heir meanwhile,
 * which comes after it. */
__attribute__((noinline)) static void bequeath(struct client *client, size_t bytes)
{
    struct buffer *heir = client->heir, rest = {0};
    struct span all = buffer_span(&client->in);
    struct span since = buffer_span(heir);
    bool kept = buffer_try_append(&rest, all.at + bytes, all.length - bytes);
    client->in.end = client->in.start + bytes;
    kept = buffer_try_append(&client->in, since.at, since.length) && kept;
    buffer_finish(heir);
    *heir = client->in;
    client->in = rest;
    client->heir = NULL;
    if (!kept)
        client_close(client);
}

static void drop_input(struct client *client, size_t bytes)
{
    if (client->fresh.length) {
        client->fresh = (struct span){client->fresh.at + bytes, client->fresh.length - bytes};
        return;
    }
    if (bytes)
        client->measure = (struct resp_measure){0};
    if (client->heir) {
        bequeath(client, bytes);
        return;
    }
    buffer_take(&client->in, bytes);
    buffer_trim(&client->in, KEEP_BYTES);
}

/* Reading or not, and whether this was the end, is seen to where replies are written; mostly there
 * are some. */
void client_took(struct client *client, size_t bytes)
{
    drop_input(client, bytes);
    if (bytes && client_input(client).length) {
        client_queue_input(client);
        return;
    }
    client_keep_input(client);
    if (!client->output_task.queued &&
        (client->input_ended || client->reading != wants_input(client)))
        mark_dirty(client);
}
