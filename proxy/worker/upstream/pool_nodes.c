/* Those of RESP3 are made when first wanted, and those to a node of a cluster, too. */
#include "worker/upstream/pool_internal.h"

#include "base/clock.h"
#include "redis/topology/redis_cluster.h"

#include <stdlib.h>

/* 2^64 over the golden ratio (Knuth, The Art of Computer Programming 6.4): numbers that follow each
 * other are spread evenly over the upper bits of their products. */
#define GOLDEN 0x9E3779B97F4A7C15u

enum { KEEP_MS = 10000 }; /* what may be wanted again: a node without slots, an empty lane */

bool pool_is_cluster(const struct pool *pool)
{
    return pool->route->cluster != NULL;
}

/* ---- nodes ---- */

static const struct redis_map *map_of(const struct pool *pool)
{
    return redis_cluster_map(pool->route->cluster);
}

const struct redis_map *pool_map(const struct pool *pool)
{
    return pool_is_cluster(pool) ? map_of(pool) : NULL;
}

int pool_node_of(const struct pool *pool, struct span key)
{
    if (!pool_is_cluster(pool))
        return 0;
    int owner = redis_map_owner(map_of(pool), redis_slot_of(key.at, key.length));
    return owner < 0 ? NO_NODE : owner;
}

unsigned pool_slot_of(struct span key)
{
    return redis_slot_of(key.at, key.length);
}

int pool_node_at(struct pool *pool, const struct redis_place *place)
{
    int node = redis_cluster_number(pool->route->cluster, place);
    return node < 0 ? NO_NODE : node;
}

int pool_next(const struct pool *pool, int node)
{
    if (!pool_is_cluster(pool))
        return node == NO_NODE ? 0 : NO_NODE;
    int next = redis_map_next(map_of(pool), node);
    return next < 0 ? NO_NODE : next;
}

/* A slot's owner is taken: one that is being emptied, to be removed, gets less and less, and one
 * that has taken all of another's slots all that was the other's. */
int pool_node_for(const struct pool *pool, uint64_t id)
{
    if (!pool_is_cluster(pool))
        return 0;
    int owner = redis_map_owner(map_of(pool), (unsigned)(id * GOLDEN >> 50) % REDIS_SLOTS);
    return owner < 0 ? pool_next(pool, NO_NODE) : owner;
}

/* ---- connections ---- */

const struct redis_place *pool_place(const struct pool *pool, int node)
{
    return pool_is_cluster(pool) && node != NO_NODE ? &map_of(pool)->nodes[node].place : NULL;
}

static struct upstream_options options_for(const struct pool *pool, int node)
{
    return (struct upstream_options){
        .route = pool->route, .node = pool_place(pool, node), .nowhere = node == NO_NODE};
}

static struct upstream *create(struct pool *pool, int node, bool resp3, unsigned lane)
{
    struct upstream_options options = options_for(pool, node);
    options.resp3 = resp3;
    options.lane = lane;
    options.large = lane == LARGE_LANE;
    struct upstream *upstream = upstream_create(pool->serving, &options);
    if (pool->holds)
        upstream_hold(upstream, true);
    return upstream;
}

struct upstream *pool_own(struct pool *pool, int node, const struct upstream_options *options)
{
    struct upstream_options whole = *options, where = options_for(pool, node);
    whole.route = where.route;
    whole.node = where.node;
    whole.nowhere = where.nowhere;
    return upstream_create(pool->serving, &whole);
}

static void make_room(struct pool *pool, unsigned count)
{
    if (count <= pool->node_count)
        return;
    pool->nodes = xrealloc(pool->nodes, count * sizeof *pool->nodes);
    for (unsigned i = pool->node_count; i < count; i++)
        pool->nodes[i] = (struct pool_node){0};
    pool->node_count = count;
}

static struct pool_node *node_at(struct pool *pool, int node)
{
    return node == NO_NODE ? &pool->nowhere : &pool->nodes[node];
}

struct upstream *pool_lane(struct pool *pool, int node, bool resp3, unsigned lane)
{
    make_room(pool, (unsigned)(node + 1));
    struct upstream **upstream = &node_at(pool, node)->shared[resp3][lane];
    if (!*upstream)
        *upstream = create(pool, node, resp3, lane);
    if (node == NO_NODE)
        upstream_set_waiting(*upstream, !redis_cluster_is_settled(pool->route->cluster));
    return *upstream;
}

struct upstream *pool_known_lane(const struct pool *pool, int node, bool resp3, unsigned lane)
{
    return (unsigned)node < pool->node_count ? pool->nodes[node].shared[resp3][lane] : NULL;
}

struct upstream *pool_shared(struct pool *pool, int node, bool resp3, uint64_t id)
{
    unsigned lane = id == POOL_TAKES_MUCH ? LARGE_LANE : (uint32_t)id % pool->count;
    return pool_lane(pool, node, resp3, lane);
}

static void each_of(struct pool_node *node, void (*act)(struct upstream *upstream))
{
    for (unsigned i = 0; i < PLACES; i++)
        if (node->shared[i % 2][i / 2])
            act(node->shared[i % 2][i / 2]);
}

void pool_each(struct pool *pool, void (*act)(struct upstream *upstream))
{
    for (unsigned i = 0; i < pool->node_count; i++)
        each_of(&pool->nodes[i], act);
    each_of(&pool->nowhere, act);
    if (pool->replicas)
        replicas_each(pool->replicas, act);
}

/* ---- replicas ---- */

static bool reads_replicas(const struct pool *pool)
{
    return serving_config(pool->serving)->cache_reads == CACHE_READS_REPLICA;
}

void pool_follow(struct pool *pool)
{
    if (pool->serving->pool == pool)
        pool->serving->is_led = pool_is_cluster(pool) || reads_replicas(pool);
    if (reads_replicas(pool) && !pool->replicas)
        pool->replicas = replicas_create(pool->serving, pool->route);
}

struct upstream *pool_replica(struct pool *pool, int node, bool resp3, uint64_t id)
{
    return reads_replicas(pool) && pool->replicas ? replicas_choose(pool->replicas, node, resp3, id)
                                                  : NULL;
}

size_t pool_report_replicas(const struct pool *pool, struct replica_word *words, size_t room)
{
    return pool->replicas && reads_replicas(pool) ? replicas_report(pool->replicas, words, room)
                                                  : 0;
}

/* Whichever comes first; NULL: none is. */
static struct upstream *any_up(const struct pool_node *node)
{
    for (unsigned i = 0; i < PLACES; i++)
        if (node->shared[i % 2][i / 2] && upstream_is_up(node->shared[i % 2][i / 2]))
            return node->shared[i % 2][i / 2];
    return NULL;
}

static void follow_replicas_of(struct pool *pool, int node, const struct redis_place *place)
{
    struct upstream *upstream = any_up(&pool->nodes[node]);
    if (upstream)
        replicas_follow(pool->replicas, node, place, upstream);
}

static void follow_replicas(struct pool *pool)
{
    void (*ends)(void *arg, const struct upstream *upstream) =
        pool->events ? pool->events->ends : NULL;
    int node = NO_NODE;
    if (!pool->replicas)
        return;
    replicas_close_idle(pool->replicas, !reads_replicas(pool), ends,
                        pool->events ? pool->events->arg : NULL);
    while (reads_replicas(pool) && (node = pool_next(pool, node)) != NO_NODE)
        if ((unsigned)node < pool->node_count)
            follow_replicas_of(pool, node,
                               pool_is_cluster(pool) ? &map_of(pool)->nodes[node].place : NULL);
}

static void hold(struct upstream *upstream)
{
    upstream_hold(upstream, true);
}

static void let_go(struct upstream *upstream)
{
    upstream_hold(upstream, false);
}

void pool_hold(struct pool *pool, bool holds)
{
    pool->holds = holds;
    pool_each(pool, holds ? hold : let_go);
}

/* ---- changes ---- */

static void end_waiting(struct upstream *upstream)
{
    upstream_set_waiting(upstream, false);
}

struct learned *pool_learned(struct pool *pool)
{
    return &pool->learned;
}

/* Another node may be of another version, or have other modules. */
void pool_tell_changed(struct pool *pool)
{
    learned_forget(&pool->learned);
    if (pool->events && pool->events->changed)
        pool->events->changed(pool->events->arg);
}

void pool_refresh(struct pool *pool)
{
    if (pool->route->cluster)
        redis_cluster_ask(pool->route->cluster);
}

static void on_changed(void *arg)
{
    struct pool *pool = arg;
    each_of(&pool->nowhere, end_waiting);
    pool_tell_changed(pool);
}

static bool all_of(const struct pool_node *node, bool (*is)(const struct upstream *upstream))
{
    for (unsigned i = 0; i < PLACES; i++)
        if (node->shared[i % 2][i / 2] && !is(node->shared[i % 2][i / 2]))
            return false;
    return true;
}

/* What is under way at a replica is so, too. */
bool pool_is_idle(struct pool *pool)
{
    return pool_all(pool, upstream_is_idle) &&
           (!pool->replicas || replicas_all_idle(pool->replicas));
}

bool pool_all(const struct pool *pool, bool (*is)(const struct upstream *upstream))
{
    for (unsigned i = 0; i < pool->node_count; i++)
        if (!all_of(&pool->nodes[i], is))
            return false;
    return true;
}

/* From this lane on, and up to that one. Whoever hears that one ends may be led to another, for
 * which the nodes may have to move. */
static void close_idle_of(struct pool *pool, int node, unsigned first, unsigned end)
{
    for (unsigned i = 2 * first; i < 2 * end; i++) {
        struct upstream **at = &node_at(pool, node)->shared[i % 2][i / 2];
        struct upstream *upstream = *at;
        if (!upstream || !upstream_is_idle(upstream))
            continue;
        *at = NULL;
        if (pool->events && pool->events->ends)
            pool->events->ends(pool->events->arg, upstream);
        upstream_close(upstream);
    }
}

static void close_idle(struct pool *pool, unsigned first, unsigned end)
{
    for (unsigned i = 0; i < pool->node_count; i++)
        close_idle_of(pool, (int)i, first, end);
    close_idle_of(pool, NO_NODE, first, end);
}

void pool_close_idle(struct pool *pool)
{
    close_idle(pool, 0, LANES);
    if (pool->replicas)
        replicas_close_idle(pool->replicas, true, pool->events ? pool->events->ends : NULL,
                            pool->events ? pool->events->arg : NULL);
}

/* Whoever sent its last command there is led elsewhere before the next. One that cannot be
 * connected to, as a primary that has become a replica, is not worth keeping. */
static void leave_nodes(struct pool *pool)
{
    uint64_t now = clock_ms();
    for (unsigned i = 0; pool_is_cluster(pool) && i < map_of(pool)->count; i++) {
        make_room(pool, i + 1);
        struct pool_node *node = &pool->nodes[i];
        bool is_one = map_of(pool)->nodes[i].slots > 0;
        if (is_one || !node->used || !all_of(node, upstream_is_idle)) {
            node->used = now;
        } else if ((now - node->used > KEEP_MS || !any_up(node)) &&
                   map_of(pool)->nodes[i].place.host[0]) {
            close_idle_of(pool, (int)i, 0, LANES);
            pool->nodes[i] = (struct pool_node){0};
            pool_tell_changed(pool);
            redis_cluster_drop(pool->route->cluster, (int)i);
        }
    }
}

static bool is_not_lost(const struct upstream *upstream)
{
    return !upstream_is_lost(upstream);
}

/* Of many connections one may be lost while another comes up: the cache is back when none is lost.
 */
static void tell_log(const struct pool *pool)
{
    if (pool->serving->cache_state.is_bad && pool_all(pool, is_not_lost))
        serving_log_cache(pool->serving, NULL);
}

void pool_tick(struct pool *pool)
{
    if (pool->count < pool->wanted)
        pool_use_prepared(pool);
    close_idle(pool, pool->wanted, LARGE_LANE);
    if (clock_ms() - pool->large_wanted > KEEP_MS)
        close_idle(pool, LARGE_LANE, LANES);
    leave_nodes(pool);
    if (pool->serving->pool != pool)
        return;
    follow_replicas(pool);
    tell_log(pool);
}

/* ---- life ---- */

struct pool *pool_create(struct serving *serving, struct cache_route *route,
                         const struct pool_events *events)
{
    struct pool *pool = xcalloc(1, sizeof *pool);
    pool->serving = serving;
    pool->route = route;
    route->pool = pool;
    pool->count = pool->wanted = serving_config(serving)->cache_connections;
    pool->events = events;
    return pool;
}

void pool_open(struct pool *pool)
{
    struct cache_route *route = pool->route;
    route->cluster = cache_cluster(&pool->serving->loop, route->config, on_changed, pool);
    for (unsigned i = 0; i < pool->count && !pool_is_cluster(pool); i++)
        pool_shared(pool, 0, false, i);
    pool_follow(pool);
}

static bool speaks(const struct pool *pool, bool resp3)
{
    for (unsigned i = 0; i < pool->node_count; i++)
        if (pool_uses(pool, &pool->nodes[i], resp3))
            return true;
    return false;
}

bool pool_prepare_as(struct pool *pool, const struct pool *other)
{
    int node = pool_next(pool, NO_NODE);
    if (node == NO_NODE)
        return false;
    for (; node != NO_NODE; node = pool_next(pool, node))
        for (unsigned i = 0; i < 2 * pool->count; i++)
            if (speaks(other, i % 2 == 1))
                pool_lane(pool, node, i % 2 == 1, i / 2);
    return pool_all(pool, upstream_is_up);
}

void pool_close(struct pool *pool)
{
    pool_each(pool, upstream_close);
    if (pool_is_cluster(pool))
        redis_cluster_close(pool->route->cluster, NULL, NULL);
    pool->route->cluster = NULL;
    if (pool->serving->pool == pool)
        pool->serving->is_led = false;
}

void pool_destroy(struct pool *pool)
{
    replicas_destroy(pool->replicas);
    learned_forget(&pool->learned);
    free(pool->nodes);
    free(pool);
}
