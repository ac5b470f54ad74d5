/* Conditions are not understood here, neither the operator's text nor what the server makes of it:
 * the server is asked to plan them, and prints equal ones alike: blanks, parentheses, the case of
 * letters and implied casts are gone from a plan. They stand among the columns of a SELECT, for as
 * its WHERE they would also decide which partitions and indexes the plan has. */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/identifier.h"

#include <stdlib.h>
#include <string.h>

/* Classes of errors that say something of a statement; others say that it could not be tried. */
static bool is_verdict(const struct pg_error *error)
{
    return strncmp(error->sqlstate, "42", 2) == 0 || strncmp(error->sqlstate, "22", 2) == 0 ||
           strncmp(error->sqlstate, "0A", 2) == 0;
}

static char *text_of(const PGresult *plan)
{
    struct buffer text = {0};
    for (int row = 0; row < PQntuples(plan); row++)
        buffer_printf(&text, "%s\n", answer_text(plan, row, 0));
    return buffer_string(&text);
}

/* CONDITION_YES with the plan as a new string, or CONDITION_NO: it makes no sense. Permission is
 * asked for when a plan is begun: a statement that is denied it is in order otherwise, and ""
 * stands for its plan. */
static enum condition_answer plan(const struct subject *subject, const char *sql, char **text,
                                  struct pg_error *error)
{
    PGresult *result = questions_ask(subject->questions, sql, 0, NULL, error);
    *text = result ? text_of(result) : NULL;
    PQclear(result);
    if (*text || is_verdict(error)) {
        bool denied = !*text && strcmp(error->sqlstate, "42501") == 0;
        *text = denied ? xstrdup("") : *text;
        return *text ? CONDITION_YES : CONDITION_NO;
    }
    return CONDITION_UNKNOWN;
}

static enum condition_answer meaning(const struct subject *subject, const char *condition,
                                     char **text, struct pg_error *error)
{
    char *sql = xasprintf("EXPLAIN (VERBOSE, COSTS OFF) SELECT (%s\n) FROM %s", condition,
                          subject_table(subject));
    enum condition_answer answer = plan(subject, sql, text, error);
    free(sql);
    return answer;
}

enum condition_answer condition_is_same(const struct subject *subject, const char *a, const char *b,
                                        struct pg_error *error)
{
    char *meaning_a = NULL, *meaning_b = NULL;
    if (!a || !b || strcmp(a, b) == 0)
        return (!a == !b) ? CONDITION_YES : CONDITION_NO;
    enum condition_answer answer = meaning(subject, a, &meaning_a, error);
    if (answer == CONDITION_YES)
        answer = meaning(subject, b, &meaning_b, error);
    if (answer == CONDITION_YES && (!meaning_a[0] || strcmp(meaning_a, meaning_b) != 0))
        answer = CONDITION_NO;
    free(meaning_a);
    free(meaning_b);
    return answer;
}

/* The condition is tried on a table that has no other columns, under the same name. The row as a
 * whole would pass for one of fewer columns, but no row filter may name it. */
enum condition_answer condition_is_within(const struct subject *subject, const char *columns,
                                          struct pg_error *error)
{
    const struct keyspace *keyspace = subject->keyspace;
    char *text, *name = identifier_quote(keyspace->table_name);
    char *sql = xasprintf("EXPLAIN SELECT (%s\n) FROM (SELECT %s FROM %s) AS %s", keyspace->where,
                          columns, subject_table(subject), name);
    enum condition_answer answer = plan(subject, sql, &text, error);
    free(text);
    free(sql);
    free(name);
    return answer;
}
