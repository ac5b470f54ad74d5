/* A session with a walsender, the server's process for replication: it takes replication commands
 * beside SQL, but only by the simple protocol, without parameters. Private to backends/.
 */
#ifndef NESTGUARD_PG_WALSENDER_H
#define NESTGUARD_PG_WALSENDER_H

#include "postgres/pg_session.h"

/* As pg_session_open(). The session can only be used with what stands here, and closed with
 * pg_session_close(). */
int pg_session_open_walsender(struct pg_session **out, const struct pg_session_options *options,
                              struct pg_error *error);

/* As pg_session_exec(). */
int pg_session_command(struct pg_session *session, const char *command, PGresult **out,
                       struct pg_error *error);

/* Frees the session but not its connection, which is non-blocking and is the caller's now. */
PGconn *pg_session_detach(struct pg_session *session);

#endif
