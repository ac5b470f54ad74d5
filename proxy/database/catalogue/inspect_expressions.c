/* Expressions are tried on one row, with the statement that loads it: what fails for one may fail
 * for others. What it costs is the planner's estimate, beside that of finding the row alone. */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "database/condition_changes.h"
#include "database/keyspace_sql.h"
#include "database/row_ttl.h"

#include <stdlib.h>
#include <string.h>

enum {
    VALUE_BYTES = 1024 * 1024, /* of which are sent, at most */
    MUCH = 1000                /* in the planner's units: that of reading so many pages in a row */
};

/* subject_ask() gives the table's oid as $1. What subqueries read is followed where a log is: other
 * tables are refused (inspect_reads()). */
static const char list_changing[] =
    CONDITION_CHANGES_OF "$2" VALUE_CHANGES_IS " WHERE $1::oid IS NOT NULL"
                         " AND ($3::bool OR word <> 'a subquery')";

static void check_changing(const struct subject *subject)
{
    const char *const values[] = {subject->keyspace->value_expression,
                                  subject->config->sync == SYNC_REPLICATION ? "false" : "true"};
    PGresult *result = subject_ask(subject, "functions", list_changing, values, 2);
    if (result && PQntuples(result) == 1 && !PQgetisnull(result, 0, 0))
        subject_report(
            subject, PROBLEM_WARNING, NULL,
            "value: the result of %s changes without the row being changed, which purges "
            "nothing: a cached value stays as it was until its ttl is over",
            answer_text(result, 0, 0));
    PQclear(result);
}

/* What findings about the statement as a whole are about. */
static const char *setting(const struct subject *subject)
{
    if (!subject->keyspace->value_expression && !subject->keyspace->ttl_expression)
        return "query";
    if (!subject->keyspace->ttl_expression)
        return "value";
    return subject->keyspace->value_expression ? "value or ttl_expression" : "ttl_expression";
}

/* A warning: others may go well, and one row must not keep a guard from its start. */
static void report_failure(const struct subject *subject, const char *row,
                           const struct pg_error *error)
{
    if (questions_lost(subject->questions))
        return;
    if (questions_severity(error) == PROBLEM_WARNING) /* it was cut short */
        subject_report(subject, PROBLEM_WARNING, NULL, "%s could not be tried on %s: %s",
                       setting(subject), row, error->text);
    else
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "%s fails for %s: %s; a lookup of such a row is answered with "
                       "an error (where NULL will do: CASE WHEN ... THEN ... END)",
                       setting(subject), row, error->text);
}

/* The first line of a plan: "Index Scan ...  (cost=0.29..8.31 rows=1 width=36)". Below 0: not
 * known.
 */
static double cost_of(const PGresult *plan)
{
    const char *at = plan && PQntuples(plan) ? strstr(answer_text(plan, 0, 0), "(cost=") : NULL;
    at = at ? strstr(at, "..") : NULL;
    return at ? strtod(at + strlen(".."), NULL) : -1;
}

static double ask_cost(const struct subject *subject, const char *statement,
                       const char *const *values)
{
    struct pg_error error;
    char *sql = xasprintf("EXPLAIN %s", statement);
    PGresult *plan =
        questions_ask(subject->questions, sql, (int)subject->keyspace->key.columns, values, &error);
    double cost = cost_of(plan);
    PQclear(plan);
    free(sql);
    return cost;
}

static void tell_cost(const struct subject *subject, const char *load, const char *const *values)
{
    char *find = keyspace_sql_find(subject->keyspace, 1);
    double whole = ask_cost(subject, load, values), alone = ask_cost(subject, find, values);
    if (subject->keyspace->query && alone > MUCH)
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "query: the database expects finding one row to cost %.0f: it may work out "
                       "much of the query for each load; does every table in it have an index on "
                       "what the key is made of?",
                       alone);
    if (whole - alone > MUCH)
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "%s: the database expects a load to cost %.0f, of which only %.1f are for "
                       "finding the row: a subquery in it may lack an index",
                       setting(subject), whole, alone);
    else if (whole >= 0 && alone >= 0)
        subject_report(subject, PROBLEM_NOTE, NULL,
                       "%s: the database expects a load to cost %.2f, of which %.2f are for "
                       "finding the row",
                       setting(subject), whole, alone);
    free(find);
}

static void check_ttl(const struct subject *subject, const char *row, const PGresult *loaded)
{
    int column = PQnfields(loaded) - 1;
    if (!subject->keyspace->ttl_expression || !PQntuples(loaded) || PQgetisnull(loaded, 0, column))
        return;
    const char *text = answer_text(loaded, 0, column);
    if (row_ttl_ms(text) == ROW_TTL_UNREADABLE)
        subject_report(
            subject, PROBLEM_WARNING, NULL,
            "ttl_expression gives \"%.40s\" for %s, which is no number of seconds and no "
            "interval: such a value is not cached",
            text, row);
}

/* With the key of a row, as texts. */
static void try_row(const struct subject *subject, const char *const *values)
{
    const struct key_template *key = &subject->keyspace->key;
    struct span columns[KEY_COLUMNS_MAX];
    struct buffer text = {0};
    struct pg_error error;
    char *load = keyspace_sql_load(subject->keyspace, VALUE_BYTES);
    for (size_t i = 0; i < key->columns; i++)
        columns[i] = span_of(values[i]);
    key_template_render(key, columns, &text);
    char *row = buffer_string(&text);
    PGresult *result = questions_ask(subject->questions, load, (int)key->columns, values, &error);
    if (result) {
        check_ttl(subject, row, result);
        tell_cost(subject, load, values);
    } else {
        report_failure(subject, row, &error);
    }
    PQclear(result);
    free(row);
    free(load);
}

static void try_sample(const struct subject *subject, const PGresult *sample)
{
    const char *values[KEY_COLUMNS_MAX];
    if (!PQntuples(sample)) {
        subject_report(subject, PROBLEM_NOTE, NULL, "%s: there is no row to try it on",
                       setting(subject));
        return;
    }
    for (int i = 0; i < PQnfields(sample); i++)
        values[i] = answer_text(sample, 0, i);
    try_row(subject, values);
}

static void try_any_row(const struct subject *subject)
{
    struct pg_error error;
    char *sql = keyspace_sql_sample(subject->keyspace, 1);
    PGresult *sample = questions_ask(subject->questions, sql, 0, NULL, &error);
    if (sample)
        try_sample(subject, sample);
    else
        report_failure(subject, "any key", &error);
    PQclear(sample);
    free(sql);
}

void inspect_expressions(const struct subject *subject)
{
    const struct keyspace *keyspace = subject->keyspace;
    if (keyspace->value_expression)
        check_changing(subject);
    if (keyspace->value_expression || keyspace->ttl_expression || keyspace->query)
        try_any_row(subject);
}
