/* How every connection to PostgreSQL is begun, with or without an event loop. Private to backends/.
 *
 *   start ─▶ PQconnectPoll() ─▶ the settings of pg_settings.h, statement by statement ─▶ OK
 */
#ifndef NESTGUARD_PG_CONNECT_H
#define NESTGUARD_PG_CONNECT_H

#include "postgres/pg_error.h"
#include "postgres/pg_hosts.h"
#include "postgres/pg_settings.h"

struct pg_connect_options {
    const char *conninfo;    /* lives until the connection is up */
    const char *application; /* fallback_application_name */
    bool replication; /* to a walsender of the database: it takes replication commands, and SQL */
};

/* A connection that is coming up. */
struct pg_connecting {
    PGconn *pq;    /* the caller's to PQfinish(); never NULL */
    bool accepted; /* by the server: what follows are statements */
    struct pg_settings_of settings;
    bool answered;           /* the statement of this step */
    bool refused_options;    /* by a pooler, for the first time: the next attempt may succeed */
    struct pg_server server; /* once it is up */
};

/* Begins to connect to these hosts, without waiting; it may have failed already. Notices are
 * dropped. Only the look-up of names that have no address in `hosts` may block. */
void pg_connect_start(struct pg_connecting *connecting, const struct pg_connect_options *options,
                      const struct pg_hosts *hosts);

/* Called when the socket is ready for what the last call asked for, at first PGRES_POLLING_WRITING.
 * PGRES_POLLING_OK: it is up, non-blocking, and has all its settings. After PGRES_POLLING_FAILED
 * the reason is the connection's (pg_error_from_connection()). */
PostgresPollingStatusType pg_connect_poll(struct pg_connecting *connecting);

#endif
