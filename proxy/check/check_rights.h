/* What the cache's user (Redis' ACL) may not do of what the guard does there. */
#ifndef NESTGUARD_CHECK_RIGHTS_H
#define NESTGUARD_CHECK_RIGHTS_H

#include "base/problem.h"
#include "config/config.h"
#include "redis/redis.h"

/* Tries what the guard's fills, purges, sweeps and lookups need, with a key of each keyspace,
 * without an effect. A command that is refused is a finding that says what is lost: of the level
 * `down` where values would be wrong or missing, else a warning or a note. `place` is how findings
 * call the server. */
void check_rights(const struct config *config, const struct redis_options *options,
                  const char *place, enum problem_level down, struct problems *problems);

#endif
