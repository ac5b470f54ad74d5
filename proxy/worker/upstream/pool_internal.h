/* A pool, for its own files: nodes and connections (pool_nodes.c), and lanes (pool_lanes.c). */
#ifndef NESTGUARD_POOL_INTERNAL_H
#define NESTGUARD_POOL_INTERNAL_H

#include "cache/cache_target.h"
#include "worker/upstream/pool.h"

enum {
    LARGE_LANE = CACHE_CONNECTIONS_MAX, /* of those who take much */
    LANES,
    PLACES = 2 * LANES
};

struct pool_node {
    /* By protocol and lane; NULL: it was not wanted yet, or is not any more. */
    struct upstream *shared[2][LANES];
    uint64_t used; /* clock_ms() when it last had a slot, or anything under way */
};

struct pool {
    struct serving *serving;
    struct cache_route *route;
    unsigned count;           /* of lanes that are in use: connections to a node, a protocol */
    unsigned wanted;          /* as many as there are to be; more than `count` are prepared */
    struct pool_node *nodes;  /* by number */
    unsigned node_count;      /* that there is room for */
    struct pool_node nowhere; /* of slots that nobody has */
    uint64_t large_wanted;    /* clock_ms() when the lane of those who take much last was */
    bool holds;               /* what is sent, also on those that are yet to be opened */
    const struct pool_events *events;
    struct replicas *replicas; /* of the nodes; NULL: they have not been wanted */
    struct learned learned;
};

/* Some lane in use has a connection there. */
bool pool_uses(const struct pool *pool, const struct pool_node *node, bool resp3);

/* Prepares as many lanes as are wanted, and goes on with those at once that are. */
void pool_use_prepared(struct pool *pool);

#endif
