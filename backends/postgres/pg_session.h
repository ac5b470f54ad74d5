/* One PostgreSQL connection for a thread that may wait: the builder's COPY, the catalogue questions
 * of `check`. Every wait looks at a stop flag and at a deadline, so that neither a thread that is
 * to end nor a person who asks waits for a server that is silent.
 */
#ifndef NESTGUARD_PG_SESSION_H
#define NESTGUARD_PG_SESSION_H

#include "postgres/pg_copy.h"
#include "postgres/pg_error.h"
#include "postgres/pg_server.h"
#include <stdatomic.h>

struct pg_session;

struct pg_session_options {
    const char *conninfo;    /* URI or key=value list, as libpq takes it */
    const char *application; /* fallback_application_name */
    /* Seconds; 0: no limit. The hosts of a conninfo share them, but each has 2. */
    unsigned connect_timeout;
    /* Seconds that the server may take for the answer to a statement, and between rows of a copy;
     * 0: no limit, for what may wait for locks and transactions of others. */
    unsigned answer_timeout;
    const atomic_bool *stop; /* looked at while waiting, at least every 100 ms; NULL: never */
};

/* Errors of all calls below: -ECONNREFUSED no connection or the connection was lost, -ECANCELED
 * stop was set, -ETIMEDOUT no answer within answer_timeout, -EPROTO the server refused the
 * statement; *error says what and why. After all but -EPROTO the session can only be closed.
 * client_encoding is UTF8, but SQL_ASCII where the database has no encoding: then text is any
 * bytes. Every session has the same settings, and no limit of time, whatever role, database and
 * server set for theirs.
 */

int pg_session_open(struct pg_session **out, const struct pg_session_options *options,
                    struct pg_error *error);
void pg_session_close(struct pg_session *session); /* NULL is allowed */

/* As it was found when the session was opened. */
const struct pg_server *pg_session_server(const struct pg_session *session);

/* Runs one statement with text parameters (values[i] may be NULL). On 0 *out holds the result
 * (PGRES_TUPLES_OK or PGRES_COMMAND_OK); the caller frees it with PQclear(). `out` may be NULL. */
int pg_session_exec(struct pg_session *session, const char *sql, int count,
                    const char *const *values, PGresult **out, struct pg_error *error);

/* Called for each row; the columns live until it returns. Anything but 0 ends the copy, and
 * pg_session_copy() returns it (the session can then only be closed). */
typedef int (*pg_row_cb)(void *arg, const struct pg_column *columns, size_t count);

/* Runs `COPY (...) TO STDOUT`, in text or binary format, and hands over each row. At most 16
 * columns. */
int pg_session_copy(struct pg_session *session, const char *sql, pg_row_cb row, void *arg,
                    struct pg_error *error);

#endif
