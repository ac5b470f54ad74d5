#include "check/check_session.h"

/* The server's own statement_timeout comes first, so that a statement waiting for a lock is refused
 * and the session lives on; the session's deadline is for servers and networks that say nothing at
 * all. */
int check_session_open(struct pg_session **session, const char *conninfo, const atomic_bool *stop,
                       struct pg_error *error)
{
    const struct pg_session_options options = {.conninfo = conninfo,
                                               .application = "nestguard",
                                               .connect_timeout = CHECK_SECONDS,
                                               .answer_timeout = CHECK_SECONDS,
                                               .stop = stop};
    int status = pg_session_open(session, &options, error);
    if (!status)
        status = pg_session_exec(*session, "SET statement_timeout = '3s'", 0, NULL, NULL, error);
    return status;
}
