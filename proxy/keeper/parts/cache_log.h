/* What the log is told of the cache's servers: which of them are down and why, that all are up, and
 * which sentinels do not say where the primary is.
 */
#ifndef NESTGUARD_CACHE_LOG_H
#define NESTGUARD_CACHE_LOG_H

#include "base/log/log_state.h"
#include "redis/redis.h"

/* Zeroed: nothing was told yet. */
struct cache_log {
    struct log_state servers;   /* of fills and purges: one, or a cluster's nodes */
    struct log_state sentinels; /* bad: some do not name a primary */
    uint64_t looked;            /* clock_ms(), at the sentinels */
};

/* Behind whatever may have changed the servers. */
void cache_log_note(struct cache_log *log, const struct redis *redis);

/* Behind a note, and once in a while; of the cache that is in use. `now` is clock_ms(). */
void cache_log_tell(struct cache_log *log, const struct redis *redis, uint64_t now);

#endif
