/* A key that several rows have: no index keeps a view from having them. */
#ifndef NESTGUARD_REPEATED_KEY_H
#define NESTGUARD_REPEATED_KEY_H

#include "config/config.h"
#include "postgres/pg_session.h"

/* From the answer to keyspace_sql_twice(): a new string, or NULL where each row has its own. */
char *repeated_key_of(const PGresult *result, const struct keyspace *keyspace);

/* At the end of a build's reading of so many rows, `shared` of which have no entry of their own in
 * the filter. *key as above; NULL, too, where these are no more than the filter takes for each
 * other by chance: then nothing is asked. 0, or as pg_session_exec(). */
int repeated_key_find(char **key, struct pg_session *session, const struct keyspace *keyspace,
                      uint64_t rows, uint64_t shared, struct pg_error *error);

#endif
