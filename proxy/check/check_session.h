/* How the database is asked by who looks at a configuration. */
#ifndef NESTGUARD_CHECK_SESSION_H
#define NESTGUARD_CHECK_SESSION_H

#include "postgres/pg_session.h"

enum { CHECK_SECONDS = 5 }; /* for its connecting, and for an answer */

/* As pg_session_open(); `stop` may be NULL. */
int check_session_open(struct pg_session **session, const char *conninfo, const atomic_bool *stop,
                       struct pg_error *error);

#endif
