/* What every way to PostgreSQL shares: how a connection is begun, and how libpq's complaints become
 * a struct pg_error. Private to backends/.
 */
#ifndef NESTGUARD_PG_CONNECT_H
#define NESTGUARD_PG_CONNECT_H

#include "pg_session.h"
#include <stdbool.h>

/* Begins to connect without waiting: the caller drives PQconnectPoll() until it is OK, then calls
 * pg_connect_done(), and ends with PQfinish(). Never NULL, but possibly failed already. Notices are
 * dropped. Only the name look-up may block. */
PGconn *pg_connect_start(const char *conninfo, const char *application);
void pg_connect_done(PGconn *pq);

/* 0, or -EINVAL when libpq cannot make sense of the text. */
int pg_conninfo_check(const char *conninfo, struct pg_error *error);

/* Why the connection is bad, or the last call on it failed. */
void pg_error_from_connection(struct pg_error *error, const PGconn *pq);
/* What the server said: its message and, behind a colon, the detail. */
void pg_error_from_result(struct pg_error *error, const PGresult *result);
/* A reason of our own; no sqlstate. */
void pg_error_say(struct pg_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the server ends the connection with this error or notice. */
bool pg_result_is_fatal(const PGresult *result);

#endif
