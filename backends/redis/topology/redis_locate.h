/* Asks sentinels once, for `check`, which may wait; what serves goes by redis_topology.h. */
#ifndef NESTGUARD_REDIS_LOCATE_H
#define NESTGUARD_REDIS_LOCATE_H

#include "redis/topology/redis_topology.h"

/* 0 and *place, or -ENOENT with `error`: none of them names a primary. In both cases `word` has
 * been called for each of them, with what it says. A few seconds at most. */
int redis_locate(const struct redis_sentinels *sentinels, struct redis_place *place,
                 char error[256], void (*word)(void *arg, const struct redis_word *word),
                 void *arg);

#endif
