/* The cache is elsewhere: a worker's connections go over to it, and no client notices.
 *
 *   NONE ─ MESSAGE_MOVE ─▶ PREPARING: shared connections to the new one are opened
 *                             │ all of them are up, or have had cache_timeout
 *                             ▼
 *                           HELD: clients use them; what they send is kept back until all that went
 *                             │ over the old ones has its reply
 *                             ▼
 *                           LEAVING: what clients have of their own ends with its state, or after
 *                             │ drain_timeout; until then all that it asks goes the old way
 *                             ▼
 *   NONE ◀────────────────── nothing leads to the old one: the message goes back
 *
 * Why nothing is lost and nothing overtakes anything: replies belong to slots, whatever connection
 * they come over; and of each client nothing is written to the new connection while anything of its
 * is under way on the old one. Where the old one does not answer that lasts a moment only: then it
 * is hardly the same server under another name, and what is done there changes nothing here.
 */
#ifndef NESTGUARD_MOVE_H
#define NESTGUARD_MOVE_H

#include "guard/messages.h"
#include "worker/client/client.h"
#include "worker/upstream/pool.h"

enum move_state { MOVE_NONE, MOVE_PREPARING, MOVE_HELD, MOVE_LEAVING };

struct move {
    _Atomic enum move_state state; /* any thread may look */
    struct clients *clients;
    struct move_order *order;  /* but for MOVE_NONE */
    uint64_t since;            /* clock_ms() when this state began */
    struct cache_route *other; /* PREPARING: that of the new ones; later that of the old ones */
    struct pool *pool;         /* PREPARING: of the new ones; later of old ones, still needed */
    uv_timer_t timer;
    void (*moved)(void *arg);   /* as in redis_topology_create() */
    void (*changed)(void *arg); /* as in struct pool_events */
    void *arg;
    struct pool_events events; /* of both pools */
};

/* The first route, by this configuration; on the worker's thread. */
void move_open(struct move *move, struct clients *clients, const struct config *config,
               void (*moved)(void *arg), void (*changed)(void *arg), void *arg);

/* None is under way. */
void move_begin(struct move *move, struct move_order *order);

/* The view's configuration has as many shared connections. */
void move_resize(struct move *move);

/* As pool_tick(), for all that clients share. */
void move_tick(struct move *move);

/* Of all connections that clients share, or did. */
void move_each(struct move *move, void (*act)(struct upstream *upstream));

/* Nothing is under way at what clients share, or did. */
bool move_is_idle(const struct move *move);

/* All ends. The loop still has to run. */
void move_close(struct move *move);
void move_finish(struct move *move); /* when the loop has ended */

#endif
