/* A worker's shared connections to the cache: to the one server, or to each node of a cluster; by
 * protocol, and so many of each.
 *
 *   key ─▶ slot ─▶ the map (redis_cluster.h) ─▶ node ─▶ its connections ─▶ the client's one of them
 *
 * A client keeps to one connection of a node, by its id, so that its commands for a key stay in
 * order. A node that has no slot any more keeps its connections while something is under way on
 * them.
 *
 * Another number of them, while clients go on:
 *
 *   lanes   0 1 │ 2 3 │            0 1 2 3 │                  0 │ 1 2 3
 *        in use │ prepared: as     in use  │ grown        in use│ left: nobody is led there any
 *               │ soon as each is                               │ more; each is closed when nothing
 *               │ up it is in use                               │ is under way on it
 *
 * Beside them there is a lane for clients whose hosts take much (hosts.h), so that nobody else
 * waits behind their large replies. It is made when first wanted, ends when nobody has wanted it
 * for a while, and few commands are sent ahead over it.
 *
 * A client that is led from one lane to another has all its replies before it sends anything there
 * (client_reroute()). So nothing overtakes anything, and nothing is lost.
 */
#ifndef NESTGUARD_POOL_H
#define NESTGUARD_POOL_H

#include "worker/upstream/learned.h"
#include "worker/upstream/replicas.h"

struct pool;
struct redis_map;

/* Each may be NULL. */
struct pool_events {
    void (*changed)(
        void *arg); /* keys may be elsewhere from now on, and clients' connections are */
    void (*ends)(void *arg, const struct upstream *upstream); /* it is closed next, all idle */
    void *arg;
};

/* `route` and `events` outlive it; the route's pool is this from now on. */
struct pool *pool_create(struct serving *serving, struct cache_route *route,
                         const struct pool_events *events);

/* On the worker's thread: connects, or asks where to. */
void pool_open(struct pool *pool);

/* Connects to all nodes for who uses the other: in the protocols that are spoken there. True: it is
 * known where they are, and all is up. Else it may be called again. */
bool pool_prepare_as(struct pool *pool, const struct pool *other);

/* Keeps back what is sent on any of them, or lets it go. */
void pool_hold(struct pool *pool, bool holds);

/* A cluster's number of nodes, and where they are, may change; else there is one, number 0. */
bool pool_is_cluster(const struct pool *pool);

enum { NO_NODE = -1 };

/* The node that has this key; or a node for what has no key, by the number of whoever asks, always
 * the same while nothing changes. NO_NODE: none is known. */
int pool_node_of(const struct pool *pool, struct span key);
unsigned pool_slot_of(struct span key);
int pool_node_for(const struct pool *pool, uint64_t id);

/* In a cluster: the node at that place, even if it has no slots. NO_NODE: there are too many. */
int pool_node_at(struct pool *pool, const struct redis_place *place);

/* The next node that has slots, behind that one; from NO_NODE on. NO_NODE: there is none. */
int pool_next(const struct pool *pool, int node);

/* Who has which slots; NULL: there is no cluster. */
const struct redis_map *pool_map(const struct pool *pool);

/* In place of an id: of all whose hosts take much. */
#define POOL_TAKES_MUCH UINT64_MAX

/* The connection to the node that whoever has this id keeps to while it speaks this protocol.
 * NO_NODE: one on which everything fails. */
struct upstream *pool_shared(struct pool *pool, int node, bool resp3, uint64_t id);

/* Whether who takes much loses nothing in its own lane: at each node with which this protocol is
 * spoken it is up, or for who is there already not lost; or nothing is. To be asked for as long as
 * anybody is there, or would be; it is made where it is missing. */
bool pool_takes_much(struct pool *pool, bool resp3, bool is_there);

/* That lane itself, in use or not: what was under way on it at another node keeps its order. */
struct upstream *pool_lane(struct pool *pool, int node, bool resp3, unsigned lane);
/* The same; NULL: nobody has wanted it so far. */
struct upstream *pool_known_lane(const struct pool *pool, int node, bool resp3, unsigned lane);

/* One to that node which is an owner's, and his to close; what else it is the options say. */
struct upstream *pool_own(struct pool *pool, int node, const struct upstream_options *options);

/* Where a node is; NULL: it is none of a cluster. */
const struct redis_place *pool_place(const struct pool *pool, int node);

/* As many connections to a node as the configuration says now. More are used when they are up, or
 * no worse than the others; of what is too many each ends when nothing is under way on it. */
void pool_resize(struct pool *pool);

/* How many of them each node has that clients are led to by their ids. */
unsigned pool_lanes(const struct pool *pool);

/* Bytes of commands, whosever they are, that are there until they are answered. */
size_t pool_unanswered(const struct pool *pool);

/* The configuration, or where the pool leads, has changed: whether replicas are read from, which
 * serving->is_led says, too. */
void pool_follow(struct pool *pool);

/* A replica of the node, as pool_shared(); NULL: none that will do, and the node itself is to be
 * asked. */
struct upstream *pool_replica(struct pool *pool, int node, bool resp3, uint64_t id);

/* As replicas_report(). */
size_t pool_report_replicas(const struct pool *pool, struct replica_word *words, size_t room);

/* What the cache has said of commands; forgotten whenever anything is elsewhere. */
struct learned *pool_learned(struct pool *pool);

/* Keys may have other nodes than the map says: asks for it anew, if there is one. */
void pool_refresh(struct pool *pool);

/* The node is told to be there by a redirection. */
void pool_tell_changed(struct pool *pool);

void pool_each(struct pool *pool, void (*act)(struct upstream *upstream));
bool pool_all(const struct pool *pool, bool (*is)(const struct upstream *upstream));

/* Nothing is under way on any, nor at a replica. */
bool pool_is_idle(struct pool *pool);

/* Closes those on which nothing is under way. */
void pool_close_idle(struct pool *pool);

/* Once in a while: goes on with another number, and ends connections to nodes that are none any
 * more. */
void pool_tick(struct pool *pool);

/* Nobody sends any more. */
void pool_close(struct pool *pool);
void pool_destroy(struct pool *pool);

#endif
