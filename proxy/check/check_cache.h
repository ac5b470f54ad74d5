/* What is wrong with the cache for a configuration. */
#ifndef NESTGUARD_CHECK_CACHE_H
#define NESTGUARD_CHECK_CACHE_H

#include "base/problem.h"
#include "config/config.h"

/* Adds every finding; a cache that does not answer is one of the level `down`. Returns whether it
 * could be asked, and then its version in version[64] ("7.0.15").
 * Waits for some seconds at most, and leaves nothing changed there. */
bool check_cache(const struct config *config, enum problem_level down, struct problems *problems,
                 char version[64]);

/* Whether nothing that the file names for the cache, or that sentinels or nodes name, is where the
 * guard itself listens; else it adds an error. Who does not answer is not told of. Looks names up,
 * and waits as check_cache() does. */
bool check_cache_is_another(const struct config *config, struct problems *problems);

#endif
