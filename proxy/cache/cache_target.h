/* From the configuration to what connections to the cache are opened by: its address, or the
 * sentinels that know it.
 */
#ifndef NESTGUARD_CACHE_TARGET_H
#define NESTGUARD_CACHE_TARGET_H

#include "config/config.h"
#include "redis/topology/redis_cluster.h"
#include "redis/topology/redis_dial.h"

/* Points into itself, and to the configuration. */
struct cache_sentinels {
    struct redis_sentinels options;
    struct redis_seed seeds[CACHE_SEEDS];
};

/* NULL: the configuration names no sentinels. */
const struct redis_sentinels *cache_sentinels(struct cache_sentinels *sentinels,
                                              const struct config *config);

/* The same, as what is followed on this loop; see redis_topology_create(). */
struct redis_topology *cache_topology(uv_loop_t *loop, const struct config *config,
                                      void (*moved)(void *arg), void *arg);

/* Points into itself, and to the configuration. */
struct cache_cluster_seeds {
    struct redis_cluster_options options;
    struct redis_seed seeds[CACHE_SEEDS];
};

/* NULL: the cache is no cluster. */
const struct redis_cluster_options *cache_cluster_seeds(struct cache_cluster_seeds *cluster,
                                                        const struct config *config);

/* What is followed on this loop where the cache is a cluster; NULL: it is none. */
struct redis_cluster *cache_cluster(uv_loop_t *loop, const struct config *config,
                                    void (*changed)(void *arg), void *arg);

/* `topology` is what cache_topology() gave. */
struct redis_target cache_target(const struct config *config, struct redis_topology *topology);

#endif
