/* Connection poolers (PgBouncer and its kin) that stand between the guard and its server.
 *
 *   refuses `options`   the settings are sent by statement, as they always are as well
 *   ignores `options`   so, too: nobody would tell
 *   gives one session of the server to several connections (pool_mode = transaction, statement)
 *                       nothing can be made of that: settings and snapshots are a session's
 *   no replication      the log can be read from the server itself only
 *
 * What is known of a pooler is known by the connection string, for the process.
 *
 * Private to backends/.
 */
#ifndef NESTGUARD_PG_POOLER_H
#define NESTGUARD_PG_POOLER_H

#include "postgres/pg_error.h"
#include "postgres/pg_session.h"

#include <stdbool.h>

/* A connection was refused for what was asked of it at its start. True: for `options`, which no
 * connection will be opened with from here on, and the next may succeed. */
bool pg_pooler_refuses(const char *conninfo, const char *message);
bool pg_pooler_refuses_options(const char *conninfo);

typedef int pg_session_opener(struct pg_session **out, const struct pg_session_options *options,
                              struct pg_error *error);

/* Asks of a new session whether it has the server's session for itself, by another one beside it,
 * which `open` opens. 0; -EPROTO, it has not; or why it could not be asked: *error says it. */
int pg_pooler_check(struct pg_session *session, const struct pg_session_options *options,
                    pg_session_opener *open, struct pg_error *error);

/* Whether a connection that is up may be used: straight to the server, or by a pooler of which the
 * last check of a session has found that it may. Else *error says why not. */
bool pg_pooler_allows(const char *conninfo, const PGconn *pq, const struct pg_server *server,
                      struct pg_error *error);

/* The process that serves the connection, as the connection was told when it was opened; of a
 * session, in pg_session_io.c. */
int pg_session_told_pid(const struct pg_session *session);

#endif
