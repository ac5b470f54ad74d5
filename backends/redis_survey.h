/* What a cache says of itself that matters to who writes to it. */
#ifndef NESTGUARD_REDIS_SURVEY_H
#define NESTGUARD_REDIS_SURVEY_H

#include "redis.h"

struct redis_survey {
    uint64_t max_memory;    /* bytes; 0: no bound */
    char memory_policy[32]; /* "allkeys-lru"; "" when it does not say */
    bool is_replica;
    bool is_cluster_node;
};

/* Connects by itself and waits at most timeout_ms for each reply. 0, or a negative errno: no
 * connection, or INFO is not allowed (-EPROTO). */
int redis_survey(const struct redis_options *options, struct redis_survey *out);

/* Reads the text that INFO gives. */
void redis_survey_read(struct redis_survey *out, const char *text);

#endif
