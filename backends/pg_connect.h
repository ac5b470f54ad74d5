/* How every connection to PostgreSQL is begun, with or without an event loop. Private to backends/.
 */
#ifndef NESTGUARD_PG_CONNECT_H
#define NESTGUARD_PG_CONNECT_H

#include "pg_error.h"

/* Begins to connect without waiting: the caller drives PQconnectPoll() until it is OK, then calls
 * pg_connect_done(), and ends with PQfinish(). All connections print values alike (pg_options.h).
 * Never NULL, but possibly failed already. Notices are dropped. Only the name look-up may block. Of
 * several hosts number `first_host` is tried first; see pg_hosts.h. */
PGconn *pg_connect_start(const char *conninfo, const char *application, unsigned first_host);
/* The same to a walsender of the database: it takes replication commands, and SQL too. */
PGconn *pg_connect_start_replication(const char *conninfo, const char *application,
                                     unsigned first_host);
/* False: the connection is not to be used but opened anew, once; the first of a process has only
 * found out the time zone. */
bool pg_connect_done(PGconn *pq, const char *conninfo);

/* 0, or -EINVAL when libpq cannot make sense of the text. */
int pg_conninfo_check(const char *conninfo, struct pg_error *error);

#endif
