/* What the cache's user (Redis' ACL) may not do of what the guard does there. */
#ifndef NESTGUARD_CHECK_RIGHTS_H
#define NESTGUARD_CHECK_RIGHTS_H

#include "base/problem.h"
#include "config/config.h"
#include "redis/redis.h"

struct check_rights {
    const struct config *config;
    const struct redis_options *options;
    const char *place;       /* how findings call the server */
    bool is_replica;         /* it is only read from */
    enum problem_level down; /* of what would make values wrong or missing */
    struct problems *problems;
};

/* Tries what the guard's fills, purges, sweeps and lookups need of this server, with a key of each
 * keyspace, without an effect. A command that is refused is a finding that says what is lost: of
 * the level `down`, or a warning or a note. */
void check_rights(const struct check_rights *check);

#endif
