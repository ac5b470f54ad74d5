#include "redis/topology/redis_cluster_internal.h"

#include <stdio.h>

size_t redis_cluster_candidates(const struct redis_cluster *cluster)
{
    return cluster->map.count + cluster->options.count;
}

/* False: that number is nobody's. */
static bool candidate(const struct redis_cluster *cluster, size_t turn, struct redis_place *place)
{
    if (turn < cluster->map.count) {
        *place = cluster->map.nodes[turn].place;
        return place->host[0] != '\0';
    }
    const struct redis_seed *seed = &cluster->seeds[turn - cluster->map.count];
    snprintf(place->host, sizeof place->host, "%s", seed->host);
    place->port = seed->port;
    return true;
}

struct redis_place redis_cluster_next_place(struct redis_cluster *cluster)
{
    struct redis_place place = cluster->next;
    cluster->next.host[0] = '\0';
    cluster->is_seed = false;
    while (!place.host[0]) {
        cluster->turn = (cluster->turn + 1) % redis_cluster_candidates(cluster);
        candidate(cluster, cluster->turn, &place);
        cluster->is_seed = cluster->turn >= cluster->map.count;
    }
    return place;
}
