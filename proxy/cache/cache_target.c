/* Nothing is copied here: what is given points into the configuration, and lives no longer than
 * that. Whoever keeps it copies it (redis_topology_create(), redis_create()).
 */
#include "cache/cache_target.h"

const struct redis_sentinels *cache_sentinels(struct cache_sentinels *sentinels,
                                              const struct config *config)
{
    const struct cache_url *url = &config->cache;
    if (!url->primary)
        return NULL;
    for (size_t i = 0; i < url->sentinel_count; i++)
        sentinels->seeds[i] = (struct redis_seed){url->sentinels[i].host, url->sentinels[i].port};
    sentinels->options = (struct redis_sentinels){.seeds = sentinels->seeds,
                                                  .count = url->sentinel_count,
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

struct redis_target cache_target(const struct config *config, struct redis_topology *topology)
{
    const struct address *address = &config->cache.address;
    return (struct redis_target){.topology = topology,
                                 .fixed = {.host = address->host,
                                           .port = address->port,
                                           .path = address->path,
                                           .tls = config->cache_tls}};
}
