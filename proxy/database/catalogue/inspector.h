/* What the catalogue says of the keyspaces' tables, columns, indexes, policies, replica identities
 * and of the publication, and what of it is wrong: findings, each with its place, its words and
 * what mends it. `check` prints them; publication_ensure() makes the first one its error.
 *
 *   inspect.c ──▶ inspect_columns.c ──▶ inspect_spelling.c
 *             ──▶ inspect_permissions.c, inspect_index.c, inspect_statements.c,
 *                 inspect_expressions.c, inspect_query.c, inspect_depends.c
 *             ──▶ inspect_publication.c ──▶ inspect_identity.c    what the log says of a row's end
 *   inspect_condition.c    what two conditions have in common, for all of them
 */
#ifndef NESTGUARD_INSPECTOR_H
#define NESTGUARD_INSPECTOR_H

#include "base/problem.h"
#include "config/config.h"
#include "database/catalogue/questions.h"

struct inspector_options {
    const struct config *config;
    struct questions *questions;
    struct problems *problems;
    const char *place; /* how findings about the database as a whole call it */
    /* Only what keeps the tables from being followed; else all that can be said of them, and what
     * keeps them from being followed where the configuration wants that. */
    bool only_following;
};

/* How far the publication is from telling the stream of every row of every keyspace. */
struct publication_plan {
    char *missing; /* SQL that creates the publication or adds the tables that it lacks, once there
                      are no errors; NULL: nothing is missing, or it was not looked at */
    char *role;    /* that was asked as, quoted: ready for GRANT ... TO */
    char *tables;  /* what was looked at: "123,0,456", oids in the order of config_followed(), 0 of
                      what has no rows; NULL: not all of it was sound */
    bool exists;
    bool allowed;  /* the role may run it */
    bool filtered; /* it holds a row filter */
    /* If it is refused: the keyspace without whose table it may be allowed, or NULL. */
    const struct keyspace *hindered;
};

/* Adds every finding; those about one keyspace name it (`about`). 0; or, when a question had no
 * answer, what the first such gave, with *error: that, too, has become a finding, unless the
 * session was lost, which its owner reports. */
int inspect(struct publication_plan *plan, const struct inspector_options *options,
            struct pg_error *error);
void publication_plan_finish(struct publication_plan *plan);

#endif
