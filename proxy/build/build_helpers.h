/* The connections of a build beside its first one: each reads shares of a large table under the
 * same snapshot. One that cannot be had is done without.
 */
#ifndef NESTGUARD_BUILD_HELPERS_H
#define NESTGUARD_BUILD_HELPERS_H

#include "build/build_locks.h"
#include "config/config.h"
#include "postgres/pg_session.h"

enum { BUILD_HELPERS_MAX = 15 }; /* build_connections may be one more */

struct build_helpers {
    struct pg_session *at[BUILD_HELPERS_MAX];
    unsigned count;
    bool no_more; /* the last one that was wanted could not be had */
};

/* Opens those that are missing to so many; all lead to this server, the one that has the snapshot.
 */
void build_helpers_get(struct build_helpers *helpers, unsigned wanted,
                       const struct pg_session_options *options, const char *snapshot,
                       const struct pg_server *server);

/* Lets each of them lock the keyspace's table; those that cannot at once are closed. */
void build_helpers_lock(struct build_helpers *helpers, const struct keyspace *keyspace);

/* build_locks_compare() of each: a name may have led it to another table than the first session.
 * When they have read what they have locked: before the next lock, for want of which one is closed.
 */
int build_helpers_compare(const struct build_helpers *helpers, const struct build_locks *locks,
                          struct pg_error *error);

void build_helpers_close(struct build_helpers *helpers); /* all; zeroed again */

#endif
