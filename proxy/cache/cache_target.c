/* Nothing is copied here: what is given points into the configuration, and lives no longer than
 * that. Whoever keeps it copies it (redis_topology_create(), redis_create()).
 */
#include "cache/cache_target.h"

static void list_seeds(struct redis_seed seeds[CACHE_SEEDS], const struct cache_url *url)
{
    for (size_t i = 0; i < url->seed_count; i++)
        seeds[i] = (struct redis_seed){url->seeds[i].host, url->seeds[i].port};
}

const struct redis_sentinels *cache_sentinels(struct cache_sentinels *sentinels,
                                              const struct config *config)
{
    const struct cache_url *url = &config->cache;
    if (!url->primary)
        return NULL;
    list_seeds(sentinels->seeds, url);
    sentinels->options = (struct redis_sentinels){.seeds = sentinels->seeds,
                                                  .count = url->seed_count,
                                                  .name = url->primary,
                                                  .user = config->sentinel_user,
                                                  .password = config->sentinel_password,
                                                  .tls = config->sentinels_tls};
    return &sentinels->options;
}

struct redis_topology *cache_topology(uv_loop_t *loop, const struct config *config,
                                      void (*moved)(void *arg), void *arg)
{
    struct cache_sentinels sentinels;
    const struct redis_sentinels *options = cache_sentinels(&sentinels, config);
    return options ? redis_topology_create(loop, options, moved, arg) : NULL;
}

const struct redis_cluster_options *cache_cluster_seeds(struct cache_cluster_seeds *cluster,
                                                        const struct config *config)
{
    const struct cache_url *url = &config->cache;
    if (!url->is_cluster)
        return NULL;
    list_seeds(cluster->seeds, url);
    cluster->options = (struct redis_cluster_options){.seeds = cluster->seeds,
                                                      .count = url->seed_count,
                                                      .user = url->user,
                                                      .password = url->password,
                                                      .tls = config->cache_tls};
    return &cluster->options;
}

struct redis_cluster *cache_cluster(uv_loop_t *loop, const struct config *config,
                                    void (*changed)(void *arg), void *arg)
{
    struct cache_cluster_seeds cluster;
    const struct redis_cluster_options *options = cache_cluster_seeds(&cluster, config);
    return options ? redis_cluster_create(loop, options, changed, arg) : NULL;
}

struct redis_target cache_target(const struct config *config, struct redis_topology *topology)
{
    const struct address *address = &config->cache.address;
    return (struct redis_target){.topology = topology,
                                 .fixed = {.host = address->host,
                                           .port = address->port,
                                           .path = address->path,
                                           .tls = config->cache_tls}};
}
