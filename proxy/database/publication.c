/* Two guards may start at the same moment: whoever comes second finds that the publication is there
 * and looks again. */
#include "database/publication.h"

#include "database/publication_survey.h"

#include <errno.h>
#include <string.h>

struct session_asker {
    struct pg_session *session;
    int status; /* of the last statement */
};

static PGresult *ask(void *arg, const char *sql, int count, const char *const *values,
                     struct pg_error *error)
{
    struct session_asker *asker = arg;
    PGresult *result = NULL;
    asker->status = pg_session_exec(asker->session, sql, count, values, &result, error);
    return result;
}

/* What does not fit a pg_error, or would be changed by becoming one line, is left to `check`. */
static void explain(struct pg_error *error, const char *place, const char *text, const char *remedy)
{
    bool fits =
        !remedy || (strlen(place) + strlen(text) + strlen(remedy) + 64 < sizeof error->text &&
                    !strpbrk(remedy, "\n\t") && !strstr(remedy, "  "));
    pg_error_say(error, "%s: %s%s%s", place, text, remedy ? "; this mends it: " : "",
                 !remedy ? ""
                 : fits  ? remedy
                         : "the SQL that `nestguard check` prints");
}

static int refuse(struct pg_error *error, const struct config *config,
                  const struct publication_survey *survey, const struct problems *problems)
{
    if (survey->unfit)
        explain(error, config->publication, survey->unfit, NULL);
    else
        explain(error, problems->at[0].place, problems->at[0].text, problems->at[0].remedy);
    return -EPROTO;
}

static bool came_second(const struct pg_error *error)
{
    return strcmp(error->sqlstate, "42710") == 0 || strcmp(error->sqlstate, "23505") == 0;
}

static int add_missing(struct session_asker *asker, const struct config *config,
                       const struct publication_survey *survey, struct pg_error *error)
{
    struct pg_error refusal;
    PQclear(ask(asker, survey->missing, 0, NULL, error));
    if (asker->status != -EPROTO)
        return asker->status;
    if (came_second(error))
        return -EAGAIN;
    refusal = *error;
    bool forbidden = strcmp(refusal.sqlstate, "42501") == 0;
    explain(error, config->publication, refusal.text, forbidden ? survey->missing : NULL);
    memcpy(error->sqlstate, refusal.sqlstate, sizeof error->sqlstate);
    return -EPROTO;
}

/* Said before anything that only a primary allows is tried. */
static int refuse_standby(struct session_asker *asker, struct pg_error *error)
{
    PGresult *result = ask(asker, "SELECT pg_is_in_recovery()", 0, NULL, error);
    bool is_standby = result && PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    if (!is_standby)
        return asker->status;
    pg_error_say(error, "the server is a standby, whose log cannot be followed: `database` must "
                        "lead to the primary");
    return -EPROTO;
}

static int ensure_once(struct session_asker *asker, const struct config *config,
                       struct pg_error *error)
{
    const struct publication_asker asks = {ask, asker};
    struct publication_survey survey;
    struct problems problems = {0};
    int status = 0;
    if (publication_survey(&survey, &asks, config, &problems, error) < 0)
        status = asker->status;
    else if (survey.unfit || problems.errors)
        status = refuse(error, config, &survey, &problems);
    else if (survey.missing)
        status = add_missing(asker, config, &survey, error);
    publication_survey_finish(&survey);
    problems_finish(&problems);
    return status;
}

int publication_ensure(struct pg_session *session, const struct config *config,
                       struct pg_error *error)
{
    struct session_asker asker = {session, 0};
    int status = refuse_standby(&asker, error);
    if (!status)
        status = ensure_once(&asker, config, error);
    if (status == -EAGAIN)
        status = ensure_once(&asker, config, error);
    return status == -EAGAIN ? -EPROTO : status;
}
