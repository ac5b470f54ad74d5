/*   inspect ─┬─ something is wrong ─────▶ the first finding is the error
 *            ├─ nothing is missing ─────▶ 0
 *            └─ CREATE or ALTER ─┬─ done ─▶ 0
 *                                ├─ somebody was quicker ─▶ -EAGAIN: once more, from the beginning
 *                                └─ refused ─▶ the server's error, and the SQL
 *
 * Two guards may start at the same moment: whoever comes second finds that the publication is
 * there, or the table in it, and looks again.
 */
#include "database/catalogue/publication_ensure.h"

#include "database/catalogue/inspector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

static int refuse(struct pg_error *error, const struct problem *problem)
{
    explain(error, problem->place, problem->text, problem->remedy);
    return -EPROTO;
}

static bool came_second(const struct pg_error *error)
{
    return strcmp(error->sqlstate, "42710") == 0 || strcmp(error->sqlstate, "23505") == 0;
}

static int add_missing(struct questions *questions, const struct config *config,
                       const struct publication_plan *plan, struct pg_error *error)
{
    struct pg_error refusal;
    PQclear(questions_ask(questions, plan->missing, 0, NULL, error));
    if (questions->status != -EPROTO)
        return questions->status;
    if (came_second(error))
        return -EAGAIN;
    refusal = *error;
    bool forbidden = strcmp(refusal.sqlstate, "42501") == 0;
    explain(error, config->publication, refusal.text, forbidden ? plan->missing : NULL);
    memcpy(error->sqlstate, refusal.sqlstate, sizeof error->sqlstate);
    return -EPROTO;
}

/* Said before anything that only a primary allows is tried. */
static int refuse_standby(struct questions *questions, struct pg_error *error)
{
    PGresult *result = questions_ask(questions, "SELECT pg_is_in_recovery()", 0, NULL, error);
    bool is_standby = result && answer_true(result, 0, 0);
    PQclear(result);
    if (!is_standby)
        return questions->status;
    pg_error_say(error, "the server is a standby, whose log cannot be followed: `database` must "
                        "lead to the primary");
    return -EPROTO;
}

/* What keeps tables from being followed is an error, whatever else could be said of them. */
static int ensure_once(struct questions *questions, const struct config *config, char **tables,
                       const struct keyspace **blamed, struct pg_error *error)
{
    struct problems problems = {0};
    struct publication_plan plan;
    const struct inspector_options options = {.config = config,
                                              .questions = questions,
                                              .problems = &problems,
                                              .place = config->publication,
                                              .only_following = true};
    int status = inspect(&plan, &options, error);
    *blamed = NULL;
    free(*tables);
    *tables = plan.tables;
    plan.tables = NULL;
    if (!status && problems.count) {
        *blamed = problems.at[0].about;
        status = refuse(error, &problems.at[0]);
    } else if (!status && plan.missing) {
        *blamed = plan.hindered;
        status = add_missing(questions, config, &plan, error);
    }
    publication_plan_finish(&plan);
    problems_finish(&problems);
    return status;
}

int publication_ensure(struct pg_session *session, const struct config *config, char **tables,
                       const struct keyspace **blamed, struct pg_error *error)
{
    *blamed = NULL;
    *tables = NULL;
    struct questions questions = {.session = session};
    int status = refuse_standby(&questions, error);
    if (!status)
        status = ensure_once(&questions, config, tables, blamed, error);
    if (status == -EAGAIN)
        status = ensure_once(&questions, config, tables, blamed, error);
    return status == -EAGAIN ? -EPROTO : status;
}
