/* What keeps a database from being followed by its own log (sync: replication). */
#ifndef NESTGUARD_CHECK_REPLICATION_H
#define NESTGUARD_CHECK_REPLICATION_H

#include "base/problem.h"
#include "check/check_questions.h"
#include "config/config.h"

/* What of it there is to check. */
struct check_replication {
    struct questions *questions;
    const struct config *config;
    const char *place; /* how findings about the server call it */
    const char *role;  /* quoted: ready for GRANT ... TO */
    struct problems *problems;
};

/* The server: its settings, what is left of its limits, the role's rights, and whether it takes a
 * replication connection. Adds every finding. */
void check_replication_server(const struct check_replication *check);

/* Publication and tables. To be asked once the tables are in order otherwise. */
void check_replication_publication(const struct check_replication *check);

#endif
