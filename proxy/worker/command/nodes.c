/* A connection of a client's own leads to one node, like any other. What leaves state on it, or
 * waits on it, goes there only if its key is there; what leaves none goes to its key's node, over
 * that connection or a shared one.
 *
 * MULTI is answered before it is sent, for its node is that of the first key behind it:
 *
 *   MULTI ─▶ +OK      PING ─▶ +QUEUED, and kept      SET k ─▶ own connection to k's node:
 *                                                             MULTI, PING, SET k
 */
#include "worker/command/nodes.h"

#include "worker/client/footing.h"
#include "worker/client/listening_commands.h"
#include "worker/client/pinned.h"
#include "worker/client/queued_writes.h"
#include "worker/client/tracking.h"
#include "worker/command/bound.h"
#include "worker/command/keys/lookup_many.h"
#include "worker/command/multi.h"
#include "worker/command/refusals.h"
#include "worker/command/script_end.h"
#include "worker/command/stateful.h"
#include "worker/command/unnamed.h"
#include "worker/command/upload.h"
#include "worker/command/wait.h"
#include "worker/command/whole.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

static struct span key_of(const struct request *request, const struct command_way *way)
{
    return request->arguments[way->key];
}

static int node_of(const struct client *client, struct span key)
{
    return pool_node_of(client_pool(client), key);
}

/* All that was asked is answered: nothing can be overtaken on its own connection, which is as good
 * as a new one. */
static bool may_reuse_own(const struct client *client)
{
    return pinned_is_idle(client) && upstream_is_up(client->pinned.own) &&
           upstream_route(client->pinned.own) == client->serving->route && !tracking_is_on(client);
}

static void leave_unneeded(struct client *client)
{
    if (client->pinned.own && !client_needs_own(client))
        pinned_end(client);
}

/* Where the client's state is, or else the node for what has no key: while that is told of keys,
 * over a connection that is, if there may be one. */
static void go_home(struct client *client)
{
    int home = pool_node_for(client_pool(client), client->id);
    leave_unneeded(client);
    if (client->pinned.own)
        client->upstream = client->pinned.own;
    else if (tracking_is_on(client) && tracking_open(client, home) == 0)
        client_go_to(client, home);
    else
        client->upstream = client_shared(client, client->replies.resp3);
    client_go_beside(client);
}

/* What it reads there it is told of, if it is told of anything. True: it cannot be. */
static bool is_untold(struct client *client, const struct request *request, int node)
{
    if (tracking_open(client, node) == 0)
        return false;
    pinned_refuse_busy(client);
    if (!request || request->command->effect == EFFECT_WATCH)
        client_leave(client); /* nothing of a transaction is done without it */
    return true;
}

/* ---- MULTI ---- */

static bool is_named(const struct request *request, const char *name)
{
    return strcmp(request->command->name, name) == 0;
}

/* With WATCH the node is known. */
static bool begin_multi(struct client *client, const struct request *request)
{
    go_home(client);
    if (request->count > 1)
        return false;
    if (client->pinned.own) {
        tracking_precede(client);
        footing_precede(client);
        return false;
    }
    client->pinned.states |= PINNED_MULTI;
    queued_forget(client);
    resp_write_status(client_reply(client), "OK");
    return true;
}

/* What it has held back so far goes to this node. False: it cannot. */
static bool begin_at(struct client *client, int node)
{
    if (is_untold(client, NULL, node))
        return false;
    client_go_to(client, node);
    tracking_precede(client);
    client->pinned.tracking.caching = CACHING_UNSAID;
    return multi_begin_late(client);
}

static bool begin_at_any(struct client *client)
{
    bool has_begun = begin_at(client, pool_node_for(client_pool(client), client->id));
    buffer_finish(&client->pinned.late);
    return has_begun;
}

static bool begin_at_key(struct client *client, struct span key)
{
    if (!begin_at(client, node_of(client, key)))
        return false;
    footing_begin(client, key, multi_say_late);
    return true;
}

static bool end_early(struct client *client, const struct request *request)
{
    if (request->count > 1 || !is_named(request, "DISCARD"))
        return !begin_at_any(client);
    multi_discard_late(client);
    resp_write_status(client_reply(client), "OK");
    return true;
}

/* Whichever node gets it will queue it, and it is right by then: nothing is watched before there is
 * a node. */
static bool may_be_late(const struct request *request, const struct command_way *way)
{
    if (request->command->effect == EFFECT_UNWATCH)
        return request->count == 1;
    return way->route == ROUTE_ANY && request->command->kind == COMMAND_FORWARD &&
           command_arity_ok(request->command, request->count);
}

/* A command of a transaction that has no node yet. More of them than are held go to any. */
static bool queue_late(struct client *client, const struct request *request,
                       const struct command_way *way)
{
    if (is_named(request, "EXEC") || is_named(request, "DISCARD"))
        return end_early(client, request);
    if (way->key)
        return !begin_at_key(client, key_of(request, way));
    if (may_be_late(request, way) && multi_hold_late(client, request)) {
        resp_write_status(client_reply(client), "QUEUED");
        return true;
    }
    return !begin_at_any(client);
}

/* Of the node alone, and of its cluster, where clients see one server: mode.c sees to that with a
 * reply of its own, not with what EXEC brings. */
static bool tells_mode(const struct client *client, const struct request *request)
{
    return request->command->kind == COMMAND_MODE && request->command->effect == EFFECT_NONE &&
           serving_config(client->serving)->cluster_commands != CLUSTER_COMMANDS_PASS;
}

/* What a transaction asks of another node than its own. */
static bool refuse_elsewhere(struct client *client, struct span key)
{
    bool behind = footing_may_lack(client, key);
    bool elsewhere =
        !footing_is_for(client, key) && !footing_leads_to(client, node_of(client, key));
    if (behind || elsewhere)
        multi_refuse(client, behind ? REFUSED_ON_ITS_WAY : REFUSED_ELSEWHERE);
    return behind || elsewhere;
}

/* What a node would do by itself, but for others, must not be taken for all. WAIT is about what was
 * written before it: there that is the node's. */
static bool queue_in_multi(struct client *client, const struct request *request,
                           const struct command_way *way)
{
    if (!client->pinned.own && queue_late(client, request, way))
        return true;
    client->upstream = client->pinned.own;
    if (request->command->effect == EFFECT_EXEC)
        client_settle(client); /* what follows may be for another node */
    bool is_own = way->route == ROUTE_STATE || way->route == ROUTE_ANY || !way->key;
    if (way->route == ROUTE_ALL || way->route == ROUTE_END || way->route == ROUTE_SCAN ||
        way->route == ROUTE_REFUSED || way->route == ROUTE_NO_DB || tells_mode(client, request)) {
        bool untold = command_is_unnamed(request->command);
        multi_refuse(client, untold ? REFUSED_UNTOLD : REFUSED_ONE_NODE);
        return true;
    }
    return !is_own && refuse_elsewhere(client, key_of(request, way));
}

/* ---- others ---- */

static bool needs_own(const struct request *request)
{
    return command_is_stateful(request->command, request->arguments, request->count);
}

/* What follows may be for another node, and is not served before its reply. */
static bool stands_alone(const struct request *request)
{
    return request->command->effect == EFFECT_BLOCK || command_is_unnamed(request->command);
}

/* Where the client's state is, if that began with the same slot; else where it can begin. What
 * stands alone lets nothing be served behind it, so that nothing is under way on its connection,
 * which without any state is given up for one to this node. */
static bool is_there(struct client *client, struct span key)
{
    if (footing_is_for(client, key)) {
        client->upstream = client->pinned.own;
        footing_precede(client);
        return true;
    }
    if (may_reuse_own(client) && footing_leads_to(client, node_of(client, key))) {
        client->upstream = client->pinned.own;
    } else {
        leave_unneeded(client);
        client_go_to(client, node_of(client, key)); /* which may be another cluster's by now */
    }
    if (client->pinned.own && client->upstream != client->pinned.own)
        return false;
    if (!pinned_is_held(&client->pinned))
        footing_begin(client, key, NULL);
    return true;
}

/* Where its state is, or is to be. False: that is at another node. */
static bool go_to_state(struct client *client, const struct request *request, struct span key)
{
    if (footing_may_lack(client, key)) {
        resp_write_error(client_reply(client), "%s", UPSTREAM_ON_ITS_WAY);
        return false;
    }
    if (is_there(client, key)) {
        if (stands_alone(request))
            client_settle(client);
        return true;
    }
    if (client->pinned.states & PINNED_WATCH && is_named(request, "WATCH"))
        resp_write_error(client_reply(client),
                         "CROSSSLOT Keys in request don't hash to the same slot");
    else
        resp_write_error(client_reply(client),
                         "NESTGUARD unsupported: what this connection waits for, or has begun, is "
                         "on another node of the cluster");
    return false;
}

/* What is asked for key by key, or looked up, is no command of its own any more. */
static bool asks_each(enum command_kind kind)
{
    return kind == COMMAND_MGET || kind == COMMAND_EXISTS || kind == COMMAND_GET ||
           kind == COMMAND_READ;
}

/* A large command is for its own client to wait for, as with one server, and what is held of it
 * counts as that one's: over a connection of its own, if there may be one. */
static bool goes_apart(struct client *client, const struct request *request)
{
    bool is_large = request->raw.length > UPLOAD_BYTES && !asks_each(request->command->kind);
    return is_large && !tracking_is_on(client) && !client_needs_own(client) &&
           pinned_make_room(client, 1);
}

static void go_shared(struct client *client, const struct request *request, struct span key)
{
    if (goes_apart(client, request) && is_there(client, key))
        pinned_begin(client);
    else
        client_go_to_key(client, key);
}

static void go_home_with(struct client *client, const struct request *request)
{
    bool apart = goes_apart(client, request);
    go_home(client);
    if (!apart)
        return;
    pinned_begin(client);
    client_settle(client); /* what follows may be for another node */
}

static bool go_to_key(struct client *client, const struct request *request,
                      const struct command_way *way)
{
    if (!way->key) {
        go_home_with(client, request);
        return false;
    }
    struct span key = key_of(request, way);
    if (is_untold(client, request, node_of(client, key)))
        return true;
    if (!needs_own(request))
        go_shared(client, request, key);
    else if (!go_to_state(client, request, key))
        return true;
    tracking_precede(client);
    return false;
}

/* Of no key, and over a connection that is the client's own. */
static void go_anywhere(struct client *client)
{
    if (may_reuse_own(client))
        client->upstream = client->pinned.own;
    else
        go_home(client);
    client_settle(client);
}

/* All in one slot are one command, and atomic; so is one that a node refuses. */
static bool is_one(const struct request *request, const struct command_way *way)
{
    size_t words = request->count - way->key;
    if (!way->key || !command_arity_ok(request->command, request->count) || words % way->step)
        return true;
    unsigned slot = pool_slot_of(request->arguments[way->key]);
    for (size_t i = way->key; i < request->count; i += way->step)
        if (pool_slot_of(request->arguments[i]) != slot)
            return false;
    return true;
}

static bool go_by_keys(struct client *client, const struct request *request,
                       const struct command_way *way)
{
    if (is_one(request, way))
        return go_to_key(client, request, way);
    for (size_t i = way->key; i < request->count && tracking_is_on(client); i += way->step)
        if (is_untold(client, request, pool_node_of(client_pool(client), request->arguments[i])))
            return true;
    if (request->command->kind != COMMAND_MGET && request->command->kind != COMMAND_EXISTS)
        whole_by_keys(client, request, way);
    else
        lookup_each(client, request);
    return true;
}

static bool go(struct client *client, const struct request *request, const struct command_way *way)
{
    switch (way->route) {
    case ROUTE_KEY:
        return go_to_key(client, request, way);
    case ROUTE_KEYS:
        return go_by_keys(client, request, way);
    case ROUTE_ALL:
        whole_to_all(client, request, way->join);
        return true;
    case ROUTE_WAIT:
        wait_dispatch(client, request);
        return true;
    case ROUTE_END:
        script_end_dispatch(client, request);
        return true;
    case ROUTE_SCAN:
        whole_scan(client, request);
        return true;
    case ROUTE_REFUSED:
        refusals_say(client, request);
        return true;
    case ROUTE_NO_DB:
        return refusals_of_db(client, request);
    case ROUTE_STATE:
    case ROUTE_ANY:
        break;
    }
    if (command_is_unnamed(request->command)) {
        go_anywhere(client);
        return false;
    }
    go_home_with(client, request);
    if (request->command->effect == EFFECT_UNWATCH)
        client_settle(client); /* what follows may be for another node */
    return is_named(request, "MULTI") && begin_multi(client, request);
}

/* What all nodes are asked for goes to some over connections that are shared: nothing may overtake
 * it on one that comes to be then. */
static bool go_tracking(struct client *client, const struct request *request,
                        const struct command_way *way)
{
    if (stateful_refuse_tracked(client, request))
        return true;
    bool went = go(client, request, way);
    if (way->route == ROUTE_ALL || way->route == ROUTE_SCAN)
        client_settle(client);
    if (!is_named(request, "CLIENT") && !(client->pinned.states & PINNED_MULTI))
        client->pinned.tracking.caching = CACHING_UNSAID;
    return went;
}

/* ---- subscriptions ---- */

static bool is_subscription(const struct request *request)
{
    return request->command->effect == EFFECT_SUBSCRIBE ||
           request->command->effect == EFFECT_UNSUBSCRIBE;
}

/* Its own connection is to the cache that was before a reload, and will not be needed by what it
 * asks next: with that goes what had it keep to that cache. */
static bool may_change_caches(const struct client *client)
{
    const struct upstream *own = client->pinned.own;
    return own && upstream_route(own) != client->serving->route && !client_needs_own(client);
}

/* With many names: the input that these are in is to be its alone. */
static bool stands_behind(const struct client *client, const struct request *request)
{
    struct span input = buffer_span(&client->in);
    return is_subscription(request) && listening_has_pieces(request->count - 1) &&
           request->raw.at > input.at && request->raw.at < input.at + input.length;
}

bool nodes_must_wait(const struct client *client, const struct request *request)
{
    bool is_behind = client->replies.first ? is_subscription(request) || may_change_caches(client)
                                           : stands_behind(client, request);
    return is_behind && pool_is_cluster(client_pool(client));
}

/* The bytes of an inline command were written over when it was parsed. */
static const char *kept_words(const struct client *client, const struct request *request)
{
    struct span name = request->arguments[0];
    bool stays = !request->is_inline && buffer_span(&client->in).at == request->raw.at;
    return stays ? name.at + name.length + 2 : NULL;
}

/* Without names the first kind is an error, which a node says best. */
static bool subscribe(struct client *client, const struct request *request)
{
    enum pubsub_family family;
    bool ends, is_meant = pubsub_is_command(span_of(request->command->name), &family, &ends);
    client->pinned.tracking.caching = CACHING_UNSAID;
    if (!is_meant || (!ends && request->count == 1)) {
        go_home(client);
        return false;
    }
    const struct listening_words words = {request->arguments + 1, request->count - 1,
                                          kept_words(client, request)};
    (ends ? listening_end : listening_begin)(client, family, &words);
    return true;
}

/* ---- any command ---- */

/* It began one in a cluster, and has one server now. */
static bool leaves_late(struct client *client, const struct request *request)
{
    bool ends = is_named(request, "QUIT") || is_named(request, "RESET");
    if (!(client->pinned.states & PINNED_MULTI) || client->pinned.own || ends)
        return false;
    struct command_way way = command_way(request->command, request->arguments, request->count);
    return queue_late(client, request, &way);
}

static struct command_way way_of(struct client *client, const struct request *request)
{
    if (command_is_unnamed(request->command))
        return unnamed_way(client, request);
    return command_way(request->command, request->arguments, request->count);
}

bool nodes_dispatch(struct client *client, const struct request *request)
{
    if (client->pinned.states & PINNED_SKIP)
        return false;
    if (!pool_is_cluster(client_pool(client)))
        return leaves_late(client, request);
    footing_go_on(client);
    struct command_way way = way_of(client, request);
    if (refusals_of_user(client, request))
        return true;
    bool ends = is_named(request, "QUIT") || is_named(request, "RESET");
    if (client->pinned.states & PINNED_MULTI && !ends)
        return queue_in_multi(client, request, &way);
    if (is_subscription(request))
        return subscribe(client, request);
    if (bound_is(client) && !ends) {
        bound_serve(client, request);
        return true;
    }
    return tracking_is_on(client) ? go_tracking(client, request, &way) : go(client, request, &way);
}
