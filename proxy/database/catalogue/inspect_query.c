/* What a query gives: the server is asked for it without a row, and so for all that it refuses: two
 * statements, one that writes, parameters, names that there are not. */
#include "database/catalogue/subject.h"

#include "base/buffer.h"
#include "base/memory.h"
#include "database/keyspace_sql.h"

#include <stdlib.h>
#include <string.h>

/* One element of an array as SQL writes it. */
static void put_element(struct buffer *out, const char *text)
{
    buffer_printf(out, buffer_length(out) ? ",\"" : "{\"");
    for (; *text; text++)
        buffer_printf(out, "%s%c", *text == '"' || *text == '\\' ? "\\" : "", *text);
    buffer_printf(out, "\"");
}

static void put_number(struct buffer *out, long long number)
{
    buffer_printf(out, "%s%lld", buffer_length(out) ? "," : "{", number);
}

static char *array_of(struct buffer *out)
{
    buffer_printf(out, buffer_length(out) ? "}" : "{}");
    return buffer_string(out);
}

static void describe(const PGresult *shape, char *arrays[QUERY_ARRAYS])
{
    struct buffer names = {0}, types = {0}, modifiers = {0};
    for (int i = 0; i < PQnfields(shape); i++) {
        put_element(&names, PQfname(shape, i));
        put_number(&types, PQftype(shape, i));
        put_number(&modifiers, PQfmod(shape, i));
    }
    arrays[0] = array_of(&names);
    arrays[1] = array_of(&types);
    arrays[2] = array_of(&modifiers);
}

/* SQLSTATEs: a syntax error; parameters that nobody gives. */
static const char *remark_of(const struct pg_error *error)
{
    if (strcmp(error->sqlstate, "42601") == 0)
        return "; it is one SELECT (VALUES, WITH or UNION too) that can stand in parentheses, and "
               "nothing behind a semicolon";
    return strcmp(error->sqlstate, "08P01") == 0 ? "; it takes no parameters" : "";
}

static void report(const struct subject *subject, const struct pg_error *error)
{
    enum problem_level level = questions_severity(error);
    if (questions_lost(subject->questions))
        return;
    if (level == PROBLEM_WARNING)
        subject_report(subject, level, NULL, "query could not be tried: %s (is a table locked?)",
                       error->text);
    else
        subject_report(subject, level, NULL, "query is not accepted by the server: %s%s",
                       error->text, remark_of(error));
}

bool inspect_query(const struct subject *subject, char *arrays[QUERY_ARRAYS])
{
    struct pg_error error;
    char *rows = keyspace_sql_rows(subject->keyspace);
    char *sql = xasprintf("SELECT * FROM %s LIMIT 0", rows);
    PGresult *shape = questions_ask(subject->questions, sql, 0, NULL, &error);
    if (shape) {
        describe(shape, arrays);
    } else {
        inspection_note(subject->inspection, &error);
        report(subject, &error);
    }
    bool is_accepted = shape != NULL;
    PQclear(shape);
    free(sql);
    free(rows);
    return is_accepted;
}
