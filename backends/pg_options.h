/* How the server prints values to our connections: the same to all of them. Private to backends/.
 */
#ifndef NESTGUARD_PG_OPTIONS_H
#define NESTGUARD_PG_OPTIONS_H

#include <libpq-fe.h>
#include <stdbool.h>

/* The `options` of a connection to be opened, with `more` (each with a blank before it) among them;
 * what the conninfo's own say comes before ours. Freed by the caller. */
char *pg_options_make(const char *conninfo, const char *more);

/* Of a connection that is up: false when it was opened before its time zone was known. It is known
 * now, and whoever opens the connection again has it. */
bool pg_options_hold(const PGconn *pq, const char *conninfo);

#endif
