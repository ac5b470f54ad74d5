/* What keeps a database from being followed by its own log (sync: replication). */
#ifndef NESTGUARD_CHECK_REPLICATION_H
#define NESTGUARD_CHECK_REPLICATION_H

#include "base/problem.h"
#include "check/check_provider.h"
#include "config/config.h"
#include "database/catalogue/inspector.h"

#include <stdatomic.h>

/* What of it there is to check. */
struct check_replication {
    struct questions *questions;
    const struct config *config;
    const char *place; /* how findings about the server call it */
    struct problems *problems;
    enum provider provider;
    const atomic_bool *stop; /* of waits for further connections; or NULL */
};

/* The server: its settings, what is left of its limits, the role's rights, and whether it takes a
 * replication connection. Adds every finding. */
void check_replication_server(const struct check_replication *check);

/* Whether what the publication lacks can be added. */
void check_replication_plan(const struct check_replication *check,
                            const struct publication_plan *plan);

#endif
