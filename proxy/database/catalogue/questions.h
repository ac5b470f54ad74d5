/* Statements over a session, whose loss is remembered: once it is lost, nothing more is asked. */
#ifndef NESTGUARD_QUESTIONS_H
#define NESTGUARD_QUESTIONS_H

#include "base/problem.h"
#include "postgres/pg_session.h"
#include <stdbool.h>

/* Zeroed, then the session is set, which stays its owner's. */
struct questions {
    struct pg_session *session;
    int status; /* of the last question; what ended the session stays */
    struct pg_error loss;
};

/* Runs one statement with text parameters. Returns its result (freed with PQclear), or NULL: then
 * the server refused it and *error says why, or the session is lost. Once it is lost every further
 * question is NULL at once, with the error that ended it. */
PGresult *questions_ask(struct questions *questions, const char *sql, int count,
                        const char *const *values, struct pg_error *error);

/* How bad it is that a question has no answer. One that was cut short (by its time limit behind a
 * lock, or for want of room) says nothing of what it asked about, and must not end a start: a build
 * asks again what it needs to know, and waits for it. */
enum problem_level questions_severity(const struct pg_error *error);

/* NULL while the session can be asked; otherwise why it ended. */
const struct pg_error *questions_lost(const struct questions *questions);

/* Cells of a result. */
static inline const char *answer_text(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column);
}

static inline bool answer_true(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column)[0] == 't';
}

#endif
