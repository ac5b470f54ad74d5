/* Asks sentinels, or a cluster, once, for `check`, which may wait; what serves goes by
 * redis_topology.h. */
#ifndef NESTGUARD_REDIS_LOCATE_H
#define NESTGUARD_REDIS_LOCATE_H

#include "redis/topology/redis_cluster.h"

/* 0 and *place, or -ENOENT with `error`: none of them names a primary. In both cases `word` has
 * been called for each of them, with what it says. A few seconds at most. */
int redis_locate(const struct redis_sentinels *sentinels, struct redis_place *place,
                 char error[256], void (*word)(void *arg, const struct redis_word *word),
                 void *arg);

/* The same of a cluster: `node` is called for each that has slots. *uncovered: how many slots
 * nobody has. -ENOENT with `error`: nobody tells. */
int redis_locate_nodes(const struct redis_cluster_options *options, unsigned *uncovered,
                       char error[256], void (*node)(void *arg, const struct redis_place *place),
                       void *arg);

#endif
