/* Which lanes of a pool are in use, and how another number of them comes to be. */
#include "worker/upstream/pool_internal.h"

#include "base/clock.h"

bool pool_uses(const struct pool *pool, const struct pool_node *node, bool resp3)
{
    for (unsigned lane = 0; lane < pool->count; lane++)
        if (node->shared[resp3][lane])
            return true;
    return false;
}

static bool is_up(const struct pool *pool, const struct pool_node *node, bool resp3)
{
    for (unsigned lane = 0; lane < pool->count; lane++)
        if (node->shared[resp3][lane] && upstream_is_up(node->shared[resp3][lane]))
            return true;
    return false;
}

static void prepare(struct pool *pool)
{
    for (unsigned i = 0; i < pool->node_count; i++)
        for (unsigned place = 2 * pool->count; place < 2 * pool->wanted; place++)
            if (pool_uses(pool, &pool->nodes[i], place % 2 == 1))
                pool_lane(pool, (int)i, place % 2 == 1, place / 2);
}

/* Nobody loses by being led there. What was not wanted when lanes were prepared is made when it is,
 * as ever. */
static bool is_prepared(const struct pool *pool, unsigned lane)
{
    for (unsigned i = 0; i < 2 * pool->node_count; i++) {
        const struct pool_node *node = &pool->nodes[i / 2];
        const struct upstream *upstream = node->shared[i % 2][lane];
        if (upstream && !upstream_is_up(upstream) && is_up(pool, node, i % 2 == 1))
            return false;
    }
    return true;
}

void pool_use_prepared(struct pool *pool)
{
    unsigned before = pool->count;
    prepare(pool);
    while (pool->count < pool->wanted && is_prepared(pool, pool->count))
        pool->count++;
    if (pool->count != before)
        pool_tell_changed(pool);
}

unsigned pool_lanes(const struct pool *pool)
{
    return pool->count;
}

void pool_resize(struct pool *pool)
{
    unsigned wanted = serving_config(pool->serving)->cache_connections;
    if (wanted == pool->wanted)
        return;
    pool->wanted = wanted;
    if (pool->count <= wanted)
        return; /* the next tick prepares them */
    pool->count = wanted;
    pool_tell_changed(pool);
}

bool pool_takes_much(struct pool *pool, bool resp3, bool is_there)
{
    bool takes = true;
    pool->large_wanted = clock_ms();
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;) {
        if ((unsigned)node >= pool->node_count || !pool_uses(pool, &pool->nodes[node], resp3))
            continue;
        const struct upstream *lane = pool_lane(pool, node, resp3, LARGE_LANE);
        bool bad = is_there ? upstream_is_lost(lane) : !upstream_is_up(lane);
        takes = takes && !(bad && is_up(pool, &pool->nodes[node], resp3));
    }
    return takes;
}

size_t pool_unanswered(const struct pool *pool)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < PLACES * pool->node_count; i++) {
        const struct pool_node *node = &pool->nodes[i / PLACES];
        const struct upstream *upstream = node->shared[i % 2][i % PLACES / 2];
        bytes += upstream ? upstream_unanswered(upstream) : 0;
    }
    return bytes;
}
