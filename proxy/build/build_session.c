#include "build/build_session.h"

#include "base/clock.h"
#include "database/publication.h"
#include "database/session_value.h"
#include "database/standby_lag.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

static int execute(struct pg_session *session, const char *sql, struct pg_error *error)
{
    return pg_session_exec(session, sql, 0, NULL, NULL, error);
}

int build_session_read_values(struct pg_session *session, const struct config *config,
                              char **values, struct pg_error *error)
{
    char *sql = publication_values_sql(config);
    int status = session_text(values, session, sql, NULL, error);
    free(sql);
    return status;
}

int build_session_ask_lag(struct pg_session *session, struct built *built, struct pg_error *error)
{
    built->asked = clock_ms();
    return built->server.standby ? standby_lag_ask(&built->behind, session, error) : 0;
}

/* Repeatable read: all statements have the snapshot of the first. Why no lock is waited for long:
 * see build_locks.h. */
int build_session_begin(struct pg_session *session, struct pg_error *error)
{
    int status = execute(session, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", error);
    if (!status)
        status = execute(session, "SET LOCAL lock_timeout = '200ms'", error);
    return status;
}

/* The statement takes no parameters. The name is the server's own, of hex digits and hyphens. */
int build_session_import(struct pg_session *session, const char *exported, struct pg_error *error)
{
    char sql[128];
    snprintf(sql, sizeof sql, "SET TRANSACTION SNAPSHOT '%s'", exported);
    return execute(session, sql, error);
}

/* One that would not say it at connecting would end the transaction. */
static int ask_position(struct pg_session *session, struct pg_server *server,
                        struct pg_error *error)
{
    PGresult *result;
    if (!server->standby || !server->position)
        return 0;
    int status = pg_session_exec(session, pg_server_position, 0, NULL, &result, error);
    if (status)
        return status;
    pg_server_read_position(server, result);
    server->moment = pg_server_moment();
    PQclear(result);
    return 0;
}

int build_session_read_snapshot(struct pg_session *session, struct built *built,
                                struct pg_error *error)
{
    /* An id's age is how many came after it: the only way to ask for the next without taking it. */
    static const char sql[] =
        "SELECT s, age(pg_snapshot_xmin(s)::xid) FROM pg_current_snapshot() s";
    PGresult *result;
    int status = pg_session_exec(session, sql, 0, NULL, &result, error);
    if (status)
        return status;
    status = snapshot_read(&built->snapshot, PQgetvalue(result, 0, 0));
    built->next_xid = built->snapshot.xmin + (uint32_t)strtoul(PQgetvalue(result, 0, 1), NULL, 10);
    PQclear(result);
    if (!status)
        return ask_position(session, &built->server, error);
    pg_error_say(error, "the server's snapshot is not understood");
    return status;
}

int build_session_export(struct pg_session *session, char **exported, struct pg_error *error)
{
    return session_text(exported, session, "SELECT pg_export_snapshot()", NULL, error);
}

/* Reading has the server tidy up pages, and the log of that is flushed by nobody for up to 15 s on
 * an idle server: so long the stream would not be known to be at the log's end. The commit of a
 * transaction that wrote something flushes it, and waits for no standby where it is to be local. */
int build_session_end(struct pg_session *session, bool follows, struct pg_error *error)
{
    int status = execute(session, "COMMIT", error);
    if (status || !follows)
        return status;
    return execute(session,
                   "SELECT set_config('synchronous_commit', 'local', true),"
                   " pg_logical_emit_message(true, 'nestguard', '')",
                   error);
}
