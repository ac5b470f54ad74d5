/* Conditions and statements are not understood here: the server is asked to plan them, and what it
 * says is passed on. */
#include "database/catalogue/subject.h"

#include "base/memory.h"
#include "database/condition_changes.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>
#include <string.h>

/* subject_ask() gives the table's oid as $1, which the question has no use for: a parameter must be
 * used all the same, for the server to know its type. */
static const char list_changing[] =
    CONDITION_CHANGES_OF "$2" CONDITION_CHANGES_IS " WHERE $1::oid IS NOT NULL";

/* GRANT, when it is this table that may not be read: a condition may name others. */
static char *grant(const struct subject *subject, const struct pg_error *error)
{
    if (strcmp(error->sqlstate, "42501") != 0 || subject->keyspace->query ||
        !strstr(error->text, subject->keyspace->table_name))
        return NULL;
    return xasprintf("GRANT SELECT ON %s TO %s;", subject_table(subject), subject_role(subject));
}

static void report_refusal(const struct subject *subject, const char *what,
                           const struct pg_error *error)
{
    if (questions_lost(subject->questions))
        return;
    if (questions_severity(error) == PROBLEM_WARNING) {
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "%s could not be tried: %s (is table %s locked?)", what, error->text,
                       subject_table(subject));
        return;
    }
    char *remedy = grant(subject, error);
    subject_report(subject, PROBLEM_ERROR, remedy, "%s is not accepted by the server: %s", what,
                   error->text);
    free(remedy);
}

static void check_changing(const struct subject *subject)
{
    PGresult *result = subject_ask(subject, "functions", list_changing,
                                   (const char *const[]){subject->keyspace->where}, 1);
    if (result && PQntuples(result) == 1 && !PQgetisnull(result, 0, 0))
        subject_report(subject, PROBLEM_WARNING, NULL,
                       "where: the result of %s changes without the row being changed, which the "
                       "filter does not see: it keeps the answer of the moment when it was built",
                       answer_text(result, 0, 0));
    PQclear(result);
}

bool inspect_where(const struct subject *subject)
{
    struct pg_error error;
    if (!subject->keyspace->where)
        return true;
    char *rows = keyspace_sql_rows(subject->keyspace);
    char *sql = xasprintf("EXPLAIN SELECT 1 FROM %s WHERE (%s\n)", rows, subject->keyspace->where);
    free(rows);
    PGresult *plan = questions_ask(subject->questions, sql, 0, NULL, &error);
    if (plan)
        check_changing(subject);
    else
        report_refusal(subject, "where", &error);
    bool accepted = plan != NULL;
    PQclear(plan);
    free(sql);
    return accepted;
}

/* Alone, so that it is the one that is named. NULL: there is none. */
static bool is_accepted(const struct subject *subject, const char *setting, const char *expression)
{
    struct pg_error error;
    if (!expression)
        return true;
    char *term = keyspace_sql_expression(expression);
    char *rows = keyspace_sql_rows(subject->keyspace);
    char *sql = xasprintf("EXPLAIN SELECT %s FROM %s", term, rows);
    char *what = xasprintf("%s, an expression over a row,", setting);
    PGresult *plan = questions_ask(subject->questions, sql, 0, NULL, &error);
    if (!plan)
        report_refusal(subject, what, &error);
    bool accepted = plan != NULL;
    PQclear(plan);
    free(what);
    free(sql);
    free(rows);
    free(term);
    return accepted;
}

enum { VALUE_BYTES = 1024 * 1024 }; /* any will do */

/* With NULL in place of every key column, whose types the server finds by itself. */
static bool load_is_accepted(const struct subject *subject)
{
    const char *values[KEY_COLUMNS_MAX] = {NULL};
    struct pg_error error;
    char *load = keyspace_sql_load(subject->keyspace, VALUE_BYTES);
    char *sql = xasprintf("EXPLAIN %s", load);
    PGresult *result =
        questions_ask(subject->questions, sql, (int)subject->keyspace->key.columns, values, &error);
    if (!result)
        report_refusal(subject, "the statement that loads a row", &error);
    bool accepted = result != NULL;
    PQclear(result);
    free(sql);
    free(load);
    return accepted;
}

bool inspect_load(const struct subject *subject)
{
    bool value = is_accepted(subject, "value", subject->keyspace->value_expression);
    bool ttl = is_accepted(subject, "ttl_expression", subject->keyspace->ttl_expression);
    return value && ttl && load_is_accepted(subject);
}
