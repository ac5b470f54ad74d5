/* What a statement answers that asks for one value: the first column of its first row. */
#ifndef NESTGUARD_SESSION_VALUE_H
#define NESTGUARD_SESSION_VALUE_H

#include "postgres/pg_session.h"
#include <stdint.h>

/* `parameter` is the statement's $1; NULL: it has none. These return 0, or as pg_session_exec(). */

/* *text: a new string, "" for SQL's NULL; NULL when there is no row. */
int session_text(char **text, struct pg_session *session, const char *sql, const char *parameter,
                 struct pg_error *error);

/* *number: of a count, which has no sign; left alone when there is no row. */
int session_number(uint64_t *number, struct pg_session *session, const char *sql,
                   const char *parameter, struct pg_error *error);

#endif
