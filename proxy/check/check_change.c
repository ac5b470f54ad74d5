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

struct change {
    const struct config *running;
    struct problems found, before; /* with the one that is wanted, and with this */
    bool moves;                    /* `wanted` names another database */
    bool reached, reached_before;
};

/* A database that cannot be reached, or has less than the one before had. Where that one does not
 * answer any more, by its failover or another password, there is nothing to stay with: so what
 * keeps a keyspace from being guarded refuses only those that the file brings. */
static bool refuses(const struct change *change, const struct problem *error)
{
    if (error->about)
        return !config_has_keyspace(change->running, error->about) && !has(&change->before, error);
    return change->moves &&
           (!change->reached || (change->reached_before && !has(&change->before, error)));
}

/* What is as it was with the database as a whole (too few slots, for one) is not even told. */
static void judge(const struct change *change, struct problems *problems)
{
    for (size_t i = 0; i < change->found.count; i++) {
        const struct problem *problem = &change->found.at[i];
        if (problem->level != PROBLEM_ERROR)
            continue;
        if (refuses(change, problem))
            pass_on(problem, PROBLEM_ERROR, problems);
        else if (problem->about || !has(&change->before, problem))
            pass_on(problem, PROBLEM_WARNING, problems);
    }
}

/* Of a database that was not reached, or was lost: why. */
static void tell_unasked(const struct problems *found, struct problems *problems)
{
    for (size_t i = 0; i < found->count; i++)
        if (found->at[i].level != PROBLEM_NOTE && !found->at[i].about)
            problems_add(problems, PROBLEM_WARNING, found->at[i].place, NULL,
                         "it could not be asked whether it has what the file wants: %s",
                         found->at[i].text);
}

void check_change(const struct config *running, const struct config *wanted,
                  const atomic_bool *stop, struct problems *problems)
{
    struct change change = {.running = running, .moves = config_moves_database(running, wanted)};
    const struct database_check how = {change.moves ? PROBLEM_ERROR : PROBLEM_WARNING, stop, 0},
                                before = {PROBLEM_WARNING, stop, 0};
    char version[64];
    change.reached = check_database(wanted, &how, &change.found, version);
    if (change.found.errors && (change.moves || change.reached))
        change.reached_before = check_database(running, &before, &change.before, version);
    if (change.moves || change.reached)
        judge(&change, problems);
    else
        tell_unasked(&change.found, problems);
    problems_finish(&change.found);
    problems_finish(&change.before);
}
