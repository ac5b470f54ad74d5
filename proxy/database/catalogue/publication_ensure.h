/* The publication is made, or left alone, or what is wrong with it and its tables is an error. */
#ifndef NESTGUARD_PUBLICATION_ENSURE_H
#define NESTGUARD_PUBLICATION_ENSURE_H

#include "config/config.h"
#include "postgres/pg_session.h"

/* Creates the publication, or adds the tables that it lacks, when the role may; a publication that
 * is right is left alone. A standby is refused. A table with `where` gets it as its row filter
 * (PostgreSQL 15 and newer); publish_via_partition_root is on. Never creates what would make the
 * application's own UPDATE or DELETE fail (row filter or table without a fitting replica identity):
 * that is an error with the ALTER TABLE that mends it. Errors are those of pg_session.h; on -EPROTO
 * *error says what is wrong and holds the SQL that a person with the right to do so must run, or,
 * where that is too long for it, says that `nestguard check` prints it; *blamed is the keyspace
 * without which it may be right, or NULL. *tables, a new string or NULL, is what all of that was
 * said of (inspector.h): their names may lead elsewhere before and after. */
int publication_ensure(struct pg_session *session, const struct config *config, char **tables,
                       const struct keyspace **blamed, struct pg_error *error);

#endif
