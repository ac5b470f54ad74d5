/* A session that reads a table under a snapshot which others share: its beginning and its end. All
 * return 0, or as pg_session_exec(). */
#ifndef NESTGUARD_BUILD_SESSION_H
#define NESTGUARD_BUILD_SESSION_H

#include "build/built.h"
#include "config/config.h"
#include "database/snapshot.h"
#include "postgres/pg_session.h"

/* A new string: what the keyspaces' values depend on now; see values.h. */
int build_session_read_values(struct pg_session *session, const struct config *config,
                              char **values, struct pg_error *error);

/* Before that: how far the server, which built->server says, may be behind. */
int build_session_ask_lag(struct pg_session *session, struct built *built, struct pg_error *error);

/* Begins a transaction whose snapshot, one for all of it, is taken by its first query; LOCK TABLE
 * is none. It waits for no lock longer than a moment (sqlstate 55P03). */
int build_session_begin(struct pg_session *session, struct pg_error *error);

/* Before the first query: the snapshot is this one, that another transaction has exported. */
int build_session_import(struct pg_session *session, const char *exported, struct pg_error *error);

/* The snapshot that the transaction has, and the id that the next one to write will get; of a
 * standby up to where it has come by now, too, which is no less than what the snapshot shows. */
int build_session_read_snapshot(struct pg_session *session, struct built *built,
                                struct pg_error *error);

/* A new string: its name for others to begin with, as long as this transaction lasts. */
int build_session_export(struct pg_session *session, char **exported, struct pg_error *error);

/* Ends the transaction and, where a log is followed, has the server flush it up to here. */
int build_session_end(struct pg_session *session, bool follows, struct pg_error *error);

#endif
