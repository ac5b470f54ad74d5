/* One timer looks how far it is: often enough that what is held back waits for no more than a
 * moment, and only while something is under way.
 */
#include "worker/move.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cache/cache_target.h"
#include "worker/client/pinned.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum {
    LOOK_MS = 1,
    LEAVE_MS = 20, /* when nobody waits for it any more */
    HOLD_MS = 500  /* for replies of the old ones */
};

static size_t count_of(const struct move *move)
{
    return move->clients->shared_count;
}

/* Its place in either of the two arrays. */
static struct upstream **at(struct upstream **shared[2], size_t i)
{
    return &shared[i % 2][i / 2];
}

static void set_state(struct move *move, enum move_state state)
{
    move->state = state;
    move->since = clock_ms();
}

void move_each(struct move *move, void (*act)(struct upstream *upstream))
{
    for (size_t i = 0; i < 2 * count_of(move); i++)
        if (*at(move->shared, i))
            act(*at(move->shared, i));
}

/* ---- routes ---- */

static struct cache_route *create_route(struct move *move, const struct config *config)
{
    struct cache_route *route = xcalloc(1, sizeof *route);
    route->config = config;
    route->topology = cache_topology(&move->clients->serving->loop, config, move->moved, move->arg);
    return route;
}

static void close_route(struct cache_route *route)
{
    if (route && route->topology)
        redis_topology_close(route->topology, NULL, NULL);
    if (route)
        route->topology = NULL;
}

/* ---- PREPARING ---- */

/* As many as there are of each protocol now. */
static void open_new(struct move *move)
{
    struct serving *serving = move->clients->serving;
    for (size_t i = 0; i < 2 * count_of(move); i++)
        if (*at(move->clients->shared, i))
            *at(move->shared, i) = upstream_create(
                serving, &(struct upstream_options){.resp3 = i % 2 == 1, .route = move->other});
}

static bool is_prepared(const struct move *move)
{
    const struct serving *serving = move->clients->serving;
    bool all_up = true;
    for (size_t i = 0; i < 2 * count_of(move); i++) {
        const struct upstream *upstream = move->shared[i % 2][i / 2];
        all_up = all_up && (!upstream || upstream_is_up(upstream));
    }
    return all_up || clock_ms() - move->since > serving_config(serving)->cache_timeout_ms;
}

/* ---- over to the new ones ---- */

static void hold(struct upstream *upstream)
{
    upstream_hold(upstream, true);
}

static void let_go(struct upstream *upstream)
{
    upstream_hold(upstream, false);
}

static void each_new(struct move *move, void (*act)(struct upstream *upstream))
{
    for (size_t i = 0; i < 2 * count_of(move); i++)
        if (*at(move->clients->shared, i))
            act(*at(move->clients->shared, i));
}

/* The arrays change places, and so do the routes. A protocol that was wanted first since then has
 * its connection to the old one alone: who has it gets another. */
static void take_over(struct move *move)
{
    struct clients *clients = move->clients;
    struct cache_route *old = clients->serving->route;
    for (int i = 0; i < 2; i++) {
        struct upstream **shared = clients->shared[i];
        clients->shared[i] = move->shared[i];
        move->shared[i] = shared;
    }
    clients->serving->route = move->other;
    move->other = old;
    for (struct client *client = clients->first; client; client = client->following)
        if (!client->pinned.own && client->state < CLIENT_CLOSING)
            client->upstream = client_shared(client, client->replies.resp3);
    each_new(move, hold);
    set_state(move, MOVE_HELD);
}

static bool is_answered(const struct move *move)
{
    for (size_t i = 0; i < 2 * count_of(move); i++) {
        const struct upstream *upstream = move->shared[i % 2][i / 2];
        if (upstream && !upstream_is_idle(upstream))
            return false;
    }
    return true;
}

/* ---- LEAVING ---- */

/* A client that reads slowly may have had it wait. */
static void forget_stalls(const struct move *move, const struct upstream *upstream)
{
    for (struct client *client = move->clients->first; client; client = client->following)
        if (client->replies.stalls == upstream)
            client->replies.stalls = NULL;
}

static void close_answered(struct move *move)
{
    for (size_t i = 0; i < 2 * count_of(move); i++) {
        struct upstream **upstream = at(move->shared, i);
        if (!*upstream || !upstream_is_idle(*upstream))
            continue;
        forget_stalls(move, *upstream);
        upstream_close(*upstream);
        *upstream = NULL;
    }
}

static void follow_pinned(struct move *move)
{
    const struct config *config = serving_config(move->clients->serving);
    bool late = clock_ms() - move->since > config->drain_timeout_ms;
    for (struct client *client = move->clients->first; client; client = client->following)
        pinned_follow(client, late);
}

static void end(struct move *move)
{
    close_route(move->other);
    free(move->other);
    move->other = NULL;
    for (int i = 0; i < 2; i++) {
        free(move->shared[i]);
        move->shared[i] = NULL;
    }
    uv_timer_stop(&move->timer);
    set_state(move, MOVE_NONE);
    mailbox_return(&move->order->message);
    move->order = NULL;
}

/* ---- the course of it ---- */

static void on_look(uv_timer_t *timer)
{
    struct move *move = timer->data;
    if (move->state == MOVE_PREPARING && is_prepared(move))
        take_over(move);
    if (move->state == MOVE_HELD && (is_answered(move) || clock_ms() - move->since > HOLD_MS)) {
        each_new(move, let_go);
        set_state(move, MOVE_LEAVING);
        uv_timer_set_repeat(timer, LEAVE_MS);
    }
    if (move->state != MOVE_LEAVING)
        return;
    close_answered(move);
    follow_pinned(move);
    if (!move->other->connections)
        end(move);
}

void move_begin(struct move *move, struct move_order *order)
{
    move->order = order;
    move->other = create_route(move, order->config);
    for (int i = 0; i < 2; i++)
        move->shared[i] = xcalloc(count_of(move), sizeof(struct upstream *));
    set_state(move, MOVE_PREPARING);
    open_new(move);
    uv_timer_start(&move->timer, on_look, LOOK_MS, LOOK_MS);
}

/* ---- life ---- */

void move_open(struct move *move, struct clients *clients, const struct config *config,
               void (*moved)(void *arg), void *arg)
{
    *move = (struct move){.clients = clients, .moved = moved, .arg = arg};
    uv_timer_init(&clients->serving->loop, &move->timer);
    move->timer.data = move;
    clients->serving->route = create_route(move, config);
}

/* The order goes back as if it had been carried out: nothing leads anywhere any more. */
void move_close(struct move *move)
{
    close_route(move->clients->serving->route);
    close_route(move->other);
    uv_close((uv_handle_t *)&move->timer, NULL);
    if (move->order)
        mailbox_return(&move->order->message);
    move->order = NULL;
}

void move_finish(struct move *move)
{
    free(move->clients->serving->route);
    free(move->other);
    free(move->shared[0]);
    free(move->shared[1]);
}
