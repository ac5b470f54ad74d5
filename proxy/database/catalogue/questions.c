/* Many questions follow each other over one session, and each may end it. Whoever asks need not
 * look at that each time: once it is lost every answer is NULL, and the first loss is the one that
 * is told.
 */
#include "database/catalogue/questions.h"

#include <errno.h>
#include <string.h>

static bool is_lost(const struct questions *questions)
{
    return questions->status != 0 && questions->status != -EPROTO;
}

PGresult *questions_ask(struct questions *questions, const char *sql, int count,
                        const char *const *values, struct pg_error *error)
{
    PGresult *result = NULL;
    if (is_lost(questions)) {
        *error = questions->loss;
        return NULL;
    }
    questions->status = pg_session_exec(questions->session, sql, count, values, &result, error);
    if (is_lost(questions))
        questions->loss = *error;
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

const struct pg_error *questions_lost(const struct questions *questions)
{
    return is_lost(questions) ? &questions->loss : NULL;
}
