/* The connections of a build beside its first one: each reads shares of a large table under the
 * same snapshot. One that cannot be had is done without.
 */
#ifndef NESTGUARD_BUILD_HELPERS_H
#define NESTGUARD_BUILD_HELPERS_H

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

void build_helpers_close(struct build_helpers *helpers); /* all; zeroed again */

#endif
