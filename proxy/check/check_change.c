/* The database is asked about the configuration that runs only where the other one has errors:
 * these are compared by their words and by the keyspace that they are about. Lines are not, for a
 * file that is changed has others.
 */
#include "check/check_change.h"

#include "check/check_database.h"
#include "config/config_reload.h"

#include <string.h>

static bool is_about_same(const struct problem *one, const struct problem *other)
{
    const struct keyspace *first = one->about, *second = other->about;
    if (!first || !second)
        return first == second;
    return strcmp(first->name, second->name) == 0;
}

static bool has(const struct problems *problems, const struct problem *error)
{
    for (size_t i = 0; i < problems->count; i++)
        if (problems->at[i].level == PROBLEM_ERROR && is_about_same(&problems->at[i], error) &&
            strcmp(problems->at[i].text, error->text) == 0)
            return true;
    return false;
}

static void pass_on(const struct problem *problem, enum problem_level level,
                    struct problems *problems)
{
    problems_add(problems, level, problem->place, problem->remedy, "%s", problem->text);
}

/* What is as it was with the database as a whole (slots that this very guard has taken, for one) is
 * not even told. */
static void judge(const struct problems *found, const struct problems *before,
                  struct problems *problems)
{
    for (size_t i = 0; i < found->count; i++) {
        const struct problem *problem = &found->at[i];
        if (problem->level != PROBLEM_ERROR)
            continue;
        if (!has(before, problem))
            pass_on(problem, PROBLEM_ERROR, problems);
        else if (problem->about)
            pass_on(problem, PROBLEM_WARNING, problems);
    }
}

/* Of a database that was not reached the only warning is that. */
static void tell_unasked(const struct problems *found, struct problems *problems)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->at[i].level == PROBLEM_WARNING)
            problems_add(problems, PROBLEM_WARNING, found->at[i].place, NULL,
                         "it could not be asked whether it has what the file wants: %s",
                         found->at[i].text);
}

void check_change(const struct config *running, const struct config *wanted,
                  const atomic_bool *stop, struct problems *problems)
{
    struct problems found = {0}, before = {0};
    char version[64];
    bool moves = config_moves_database(running, wanted);
    bool reached =
        check_database(wanted, moves ? PROBLEM_ERROR : PROBLEM_WARNING, stop, &found, version);
    if (found.errors)
        check_database(running, PROBLEM_WARNING, stop, &before, version);
    judge(&found, &before, problems);
    if (!reached && !found.errors)
        tell_unasked(&found, problems);
    problems_finish(&found);
    problems_finish(&before);
}
