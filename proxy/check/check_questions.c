/* The server's own statement_timeout comes first, so that a statement waiting for a lock is refused
 * and the session lives on; the session's deadline is for servers and networks that say nothing at
 * all.
 */
#include "check/check_questions.h"

#include "base/memory.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct questions {
    struct pg_session *session;
    bool lost;
    struct pg_error loss;
};

int questions_open(struct questions **out, const char *conninfo, struct pg_error *error)
{
    struct pg_session_options options = {.conninfo = conninfo,
                                         .application = "nestguard",
                                         .connect_timeout = QUESTION_SECONDS,
                                         .answer_timeout = QUESTION_SECONDS};
    struct questions *q = xcalloc(1, sizeof *q);
    *out = NULL;
    int status = pg_session_open(&q->session, &options, error);
    if (status == 0)
        status = pg_session_exec(q->session, "SET statement_timeout = '3s'", 0, NULL, NULL, error);
    if (status != 0) {
        questions_close(q);
        return status;
    }
    *out = q;
    return 0;
}

void questions_close(struct questions *q)
{
    if (!q)
        return;
    pg_session_close(q->session);
    free(q);
}

PGresult *questions_ask(struct questions *q, const char *sql, int count, const char *const *values,
                        struct pg_error *error)
{
    PGresult *result = NULL;
    if (q->lost) {
        *error = q->loss;
        return NULL;
    }
    int status = pg_session_exec(q->session, sql, count, values, &result, error);
    if (status != 0 && status != -EPROTO) {
        q->lost = true;
        q->loss = *error;
    }
    return result;
}

/* Classes and states of PostgreSQL's documentation, appendix A. */
enum problem_level questions_severity(const struct pg_error *error)
{
    static const char *const cut_short[] = {"40", "53", "55P03", "57"};
    for (size_t i = 0; i < sizeof cut_short / sizeof *cut_short; i++)
        if (strncmp(error->sqlstate, cut_short[i], strlen(cut_short[i])) == 0)
            return PROBLEM_WARNING;
    return PROBLEM_ERROR;
}

const struct pg_error *questions_lost(const struct questions *q)
{
    return q->lost ? &q->loss : NULL;
}
