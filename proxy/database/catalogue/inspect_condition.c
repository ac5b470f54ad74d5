/* Conditions are not understood here, neither the operator's text nor what the server makes of it:
 * the server is asked to plan them, and prints equal ones alike: blanks, parentheses, the case of
 * letters and implied casts are gone from a plan. They stand among the columns of a SELECT, for as
 * its WHERE they would also decide which partitions and indexes the plan has.
 *
 * Only which collation a comparison is by, is gone, too: the planner makes a COLLATE a cast that is
 * not printed, or that looks like any other to text. So conditions with one are planned once more,
 * with a cast in its place that is seen, and tells which of the collations of both it stands for:
 *
 *   name COLLATE "C" < title COLLATE "de_DE"   ─▶
 *   name::text::date::text < title::text::date::text::date::text
 *
 * None is carried out: what a text's date is depends on settings, so it is not folded. Whatever
 * else two plans might conceal, types, modifiers, constants that a function or a setting is behind,
 * is printed as it is when both are asked, or is the same for both by then. */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/identifier.h"
#include "database/catalogue/collate_clause.h"

#include <stdlib.h>
#include <string.h>

/* Classes of errors that say something of a statement; others say that it could not be tried. */
static bool is_verdict(const struct pg_error *error)
{
    return strncmp(error->sqlstate, "42", 2) == 0 || strncmp(error->sqlstate, "22", 2) == 0 ||
           strncmp(error->sqlstate, "0A", 2) == 0;
}

/* Where the server gives its queries numbers, they are of what was written, not of what it means.
 */
static char *text_of(const PGresult *plan)
{
    static const char number[] = "Query Identifier:";
    struct buffer text = {0};
    for (int row = 0; row < PQntuples(plan); row++)
        if (strncmp(answer_text(plan, row, 0), number, sizeof number - 1) != 0)
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

/* Which collations two conditions name: a row, each as often as it is named. */
struct collations {
    PGresult *names;
    int column; /* of the next that is marked */
};

static void put_names(struct buffer *out, const char *condition)
{
    struct collate_clause clause;
    while (collate_clause_next(condition, &clause)) {
        buffer_printf(out, "%s pg_catalog.pg_collation_for('' COLLATE %.*s)",
                      buffer_length(out) ? "," : "SELECT", (int)(clause.end - clause.name),
                      clause.name);
        condition = clause.end;
    }
}

/* The place in the row where its name is first. */
static int number_of(const PGresult *names, int column)
{
    int first = 0;
    while (strcmp(answer_text(names, 0, first), answer_text(names, 0, column)) != 0)
        first++;
    return first;
}

static char *mark(const char *condition, struct collations *collations)
{
    struct buffer out = {0};
    struct collate_clause clause;
    while (collate_clause_next(condition, &clause)) {
        int casts = 1 + number_of(collations->names, collations->column++);
        buffer_printf(&out, "%.*s::pg_catalog.text", (int)(clause.at - condition), condition);
        while (casts-- > 0)
            buffer_printf(&out, "::pg_catalog.date::pg_catalog.text");
        condition = clause.end;
    }
    buffer_printf(&out, "%s", condition);
    return buffer_string(&out);
}

static enum condition_answer is_planned_alike(const struct subject *subject, const char *a,
                                              const char *b, struct pg_error *error)
{
    char *meaning_a = NULL, *meaning_b = NULL;
    enum condition_answer answer = meaning(subject, a, &meaning_a, error);
    if (answer == CONDITION_YES)
        answer = meaning(subject, b, &meaning_b, error);
    if (answer == CONDITION_YES && (!meaning_a[0] || strcmp(meaning_a, meaning_b) != 0))
        answer = CONDITION_NO;
    free(meaning_a);
    free(meaning_b);
    return answer;
}

/* Of two that are planned alike. One that has its COLLATE where no text would do, at an array, is
 * the same as its own text alone. */
static enum condition_answer is_collated_alike(const struct subject *subject, const char *a,
                                               const char *b, struct pg_error *error)
{
    struct buffer sql = {0};
    put_names(&sql, a);
    put_names(&sql, b);
    if (!buffer_length(&sql))
        return CONDITION_YES;
    char *question = buffer_string(&sql);
    struct collations collations = {questions_ask(subject->questions, question, 0, NULL, error), 0};
    free(question);
    if (!collations.names)
        return is_verdict(error) ? CONDITION_NO : CONDITION_UNKNOWN;
    char *marked_a = mark(a, &collations), *marked_b = mark(b, &collations);
    enum condition_answer answer = is_planned_alike(subject, marked_a, marked_b, error);
    PQclear(collations.names);
    free(marked_a);
    free(marked_b);
    return answer;
}

enum condition_answer condition_is_same(const struct subject *subject, const char *a, const char *b,
                                        struct pg_error *error)
{
    if (!a || !b || strcmp(a, b) == 0)
        return (!a == !b) ? CONDITION_YES : CONDITION_NO;
    enum condition_answer answer = is_planned_alike(subject, a, b, error);
    return answer == CONDITION_YES ? is_collated_alike(subject, a, b, error) : answer;
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
