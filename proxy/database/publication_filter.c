/* Conditions are not understood here, neither the operator's text nor what the server makes of it:
 * the server is asked to plan them, and prints equal ones alike. They stand among the columns of a
 * SELECT, for as its WHERE they would also decide which partitions the plan has. */
#include "database/publication_survey.h"

#include "base/buffer.h"
#include "base/identifier.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Classes of errors that say something of a statement; others say that it could not be tried. */
static bool is_verdict(const struct pg_error *error)
{
    return strncmp(error->sqlstate, "42", 2) == 0 || strncmp(error->sqlstate, "22", 2) == 0 ||
           strncmp(error->sqlstate, "0A", 2) == 0;
}

/* A new string: the plan, or NULL. Permission is asked for when a plan is begun: a statement that
 * is denied it is in order otherwise, and "" stands for its plan. */
static char *plan_of(struct surveyor *surveyor, char *sql)
{
    struct buffer plan = {0};
    if (surveyor->failed)
        return NULL;
    PGresult *result = surveyor->asker->ask(surveyor->asker->arg, sql, 0, NULL, surveyor->error);
    if (!result && strcmp(surveyor->error->sqlstate, "42501") == 0)
        return xstrdup("");
    if (!result)
        surveyor->failed = !is_verdict(surveyor->error);
    for (int row = 0; row < PQntuples(result); row++)
        buffer_printf(&plan, "%s\n", PQgetvalue(result, row, 0));
    struct span bytes = buffer_span(&plan);
    char *text = result ? xstrndup(bytes.at, bytes.length) : NULL;
    buffer_finish(&plan);
    PQclear(result);
    return text;
}

static char *meaning(struct surveyor *surveyor, size_t keyspace, const char *condition)
{
    char *sql = xasprintf("EXPLAIN (VERBOSE, COSTS OFF) SELECT (%s\n) FROM %s", condition,
                          surveyor_text(surveyor, keyspace, GUARDED_NAME));
    char *plan = plan_of(surveyor, sql);
    free(sql);
    return plan;
}

/* One that cannot be planned, or may not, is only the same as its own text. */
bool survey_same_filter(struct surveyor *surveyor, size_t keyspace, const char *a, const char *b)
{
    if (!a || !b || strcmp(a, b) == 0)
        return a ? b != NULL : b == NULL;
    char *meaning_a = meaning(surveyor, keyspace, a);
    char *meaning_b = meaning(surveyor, keyspace, b);
    bool same = meaning_a && meaning_b && meaning_a[0] && strcmp(meaning_a, meaning_b) == 0;
    free(meaning_a);
    free(meaning_b);
    return same;
}

/* The condition is tried on a table that has no other columns, under the same name. The row as a
 * whole would pass for one of fewer columns, but no row filter may name it. */
bool survey_filter_within(struct surveyor *surveyor, size_t keyspace, const char *columns)
{
    const struct keyspace *subject = &surveyor->config->keyspaces[keyspace];
    char *name = identifier_quote(subject->table_name);
    char *sql = xasprintf("EXPLAIN SELECT (%s\n) FROM (SELECT %s FROM %s) AS %s", subject->where,
                          columns, surveyor_text(surveyor, keyspace, GUARDED_NAME), name);
    char *plan = plan_of(surveyor, sql);
    bool within = plan != NULL;
    free(plan);
    free(sql);
    free(name);
    return within;
}
