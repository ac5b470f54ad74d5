/* Why PostgreSQL did not do what it was asked for: libpq's complaints, the server's, and our own.
 */
#ifndef NESTGUARD_PG_ERROR_H
#define NESTGUARD_PG_ERROR_H

#include <libpq-fe.h>
#include <stdbool.h>

/* `sqlstate` is "" when the server did not answer at all. */
struct pg_error {
    char sqlstate[6];
    char text[512]; /* one line, without a newline at its end */
};

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
