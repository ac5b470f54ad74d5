/* A Redis Cluster of two nodes that never changes: the keys "b" and "c" are number 0's, "a" and "d"
 * number 1's. */
#ifndef NESTGUARD_FAKES_CLUSTER_H
#define NESTGUARD_FAKES_CLUSTER_H

#include "redis/topology/redis_cluster.h"

struct redis_cluster {
    struct redis_map map;
};

void fake_cluster_init(struct redis_cluster *cluster);
void fake_cluster_finish(struct redis_cluster *cluster);

#endif
