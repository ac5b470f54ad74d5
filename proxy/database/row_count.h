/* How many rows a keyspace has, before they are read. */
#ifndef NESTGUARD_ROW_COUNT_H
#define NESTGUARD_ROW_COUNT_H

#include "config/config.h"
#include "postgres/pg_session.h"

/* These return 0, or as pg_session_exec(). */

/* From the server's statistics; *rows is left alone when they are not to be relied on. The table's
 * rows with a key may be fewer. */
int row_count_estimate(uint64_t *rows, struct pg_session *session, uint32_t table,
                       struct pg_error *error);

/* Exactly, under the session's snapshot: the rows that `copy` gives. */
int row_count(uint64_t *rows, struct pg_session *session, const struct keyspace *keyspace,
              struct pg_error *error);

#endif
