/* One timer looks how far it is: often enough that what is held back waits for no more than a
 * moment, and only while something is under way.
 */
#include "worker/move.h"

#include "base/clock.h"
#include "base/memory.h"
#include "cache/cache_target.h"
#include "worker/client/pinned.h"

#include <stdlib.h>

enum {
    LOOK_MS = 1,
    LEAVE_MS = 20, /* when nobody waits for it any more */
    HOLD_MS = 500  /* for replies of the old ones */
};

static void set_state(struct move *move, enum move_state state)
{
    move->state = state;
    move->since = clock_ms();
}

void move_each(struct move *move, void (*act)(struct upstream *upstream))
{
    pool_each(move->clients->serving->pool, act);
    if (move->pool)
        pool_each(move->pool, act);
}

/* Nobody is led to the old one any more, whatever the number of its connections. */
void move_resize(struct move *move)
{
    pool_resize(move->clients->serving->pool);
    pool_follow(move->clients->serving->pool);
    if (move->state == MOVE_PREPARING)
        pool_resize(move->pool);
}

void move_tick(struct move *move)
{
    pool_tick(move->clients->serving->pool);
    if (move->state == MOVE_PREPARING)
        pool_tick(move->pool);
}

static void on_changed(void *arg)
{
    const struct move *move = arg;
    move->changed(move->arg);
}

/* A client that reads slowly may have had it wait; one with state on another node's connection, or
 * that is told of keys by the cache that is left, may have used it last. */
static void forget(void *arg, const struct upstream *upstream)
{
    const struct move *move = arg;
    for (struct client *client = move->clients->first; client; client = client->following) {
        if (client->replies.stalls == upstream)
            client->replies.stalls = NULL;
        if (client->upstream == upstream && client->state < CLIENT_CLOSING)
            client->upstream = client->pinned.own ? client->pinned.own
                                                  : client_shared(client, client->replies.resp3);
    }
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

static bool is_prepared(const struct move *move)
{
    const struct serving *serving = move->clients->serving;
    return pool_prepare_as(move->pool, serving->pool) ||
           clock_ms() - move->since > serving_config(serving)->cache_timeout_ms;
}

/* ---- over to the new ones ---- */

/* The pools change places, and so do the routes. A protocol that was wanted first since then has
 * its connection to the old one alone: who has it gets another. */
static void take_over(struct move *move)
{
    struct clients *clients = move->clients;
    struct serving *serving = clients->serving;
    struct cache_route *old = serving->route;
    struct pool *pool = serving->pool;
    serving->route = move->other;
    serving->pool = move->pool;
    move->other = old;
    move->pool = pool;
    pool_follow(serving->pool);
    for (struct client *client = clients->first; client; client = client->following)
        if (!client->pinned.own && client->state < CLIENT_CLOSING)
            client->upstream = client_shared(client, client->replies.resp3);
    pool_hold(serving->pool, true);
    set_state(move, MOVE_HELD);
}

/* ---- LEAVING ---- */

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
    pool_close(move->pool);
    free(move->other);
    move->other = NULL;
    pool_destroy(move->pool);
    move->pool = NULL;
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
    if (move->state == MOVE_HELD &&
        (pool_is_idle(move->pool) || clock_ms() - move->since > HOLD_MS)) {
        pool_hold(move->clients->serving->pool, false);
        set_state(move, MOVE_LEAVING);
        uv_timer_set_repeat(timer, LEAVE_MS);
    }
    if (move->state != MOVE_LEAVING)
        return;
    pool_close_idle(move->pool);
    follow_pinned(move);
    if (!move->other->connections)
        end(move);
}

void move_begin(struct move *move, struct move_order *order)
{
    move->order = order;
    move->other = create_route(move, order->config);
    move->pool = pool_create(move->clients->serving, move->other, &move->events);
    set_state(move, MOVE_PREPARING);
    pool_open(move->pool);
    uv_timer_start(&move->timer, on_look, LOOK_MS, LOOK_MS);
}

/* ---- life ---- */

void move_open(struct move *move, struct clients *clients, const struct config *config,
               void (*moved)(void *arg), void (*changed)(void *arg), void *arg)
{
    struct serving *serving = clients->serving;
    *move = (struct move){.clients = clients, .moved = moved, .changed = changed, .arg = arg};
    move->events = (struct pool_events){.changed = on_changed, .ends = forget, .arg = move};
    uv_timer_init(&serving->loop, &move->timer);
    move->timer.data = move;
    serving->route = create_route(move, config);
    serving->pool = pool_create(serving, serving->route, &move->events);
    pool_open(serving->pool);
}

bool move_is_idle(const struct move *move)
{
    return pool_is_idle(move->clients->serving->pool) && (!move->pool || pool_is_idle(move->pool));
}

/* The order goes back as if it had been carried out: nothing leads anywhere any more. */
void move_close(struct move *move)
{
    pool_close(move->clients->serving->pool);
    if (move->pool)
        pool_close(move->pool);
    close_route(move->clients->serving->route);
    close_route(move->other);
    uv_close((uv_handle_t *)&move->timer, NULL);
    if (move->order)
        mailbox_return(&move->order->message);
    move->order = NULL;
}

void move_finish(struct move *move)
{
    pool_destroy(move->clients->serving->pool);
    if (move->pool)
        pool_destroy(move->pool);
    free(move->clients->serving->route);
    free(move->other);
}
