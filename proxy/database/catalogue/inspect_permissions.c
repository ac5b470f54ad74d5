/* What the role must be allowed to do, and the GRANT that allows it. */
#include "base/buffer.h"
#include "base/memory.h"
#include "database/catalogue/subject.h"
#include <stdlib.h>
#include <string.h>

/* The remedy names role and object as SQL needs them, ready to be pasted. */
static void report(const struct subject *subject, enum problem_level level, const char *grant,
                   const char *object, const char *text)
{
    char *remedy = xasprintf("GRANT %s ON %s TO %s;", grant, object, subject_role(subject));
    subject_report(subject, level, remedy, "role %s %s", subject_role(subject), text);
    free(remedy);
}

/* Whether the guard reads this column: those of the key, and the value's. */
static bool is_read(const struct subject *subject, const char *name)
{
    const struct keyspace *keyspace = subject->keyspace;
    if (keyspace->value_is_json || (keyspace->value && strcmp(keyspace->value, name) == 0))
        return true;
    for (size_t i = 0; i < keyspace->key.columns; i++)
        if (strcmp(keyspace->key.column[i], name) == 0)
            return true;
    for (size_t i = 0; i < keyspace->columns.count; i++)
        if (strcmp(keyspace->columns.at[i], name) == 0)
            return true;
    return false;
}

/* Appends ", column" for each that is read and may not be. */
static void list_unreadable(const struct subject *subject, struct buffer *columns)
{
    for (int row = 0; row < PQntuples(subject->columns); row++)
        if (is_read(subject, answer_text(subject->columns, row, COLUMN_NAME)) &&
            !answer_true(subject->columns, row, COLUMN_READABLE))
            buffer_printf(columns, "%s%s", buffer_length(columns) ? ", " : "",
                          answer_text(subject->columns, row, COLUMN_QUOTED));
}

/* The privilege for single columns is enough; only if one is missing, SELECT on the table is
 * proposed. */
static bool check_select(const struct subject *subject)
{
    struct buffer columns = {0};
    if (subject_is(subject, TABLE_SELECT))
        return true;
    list_unreadable(subject, &columns);
    bool readable = buffer_length(&columns) == 0;
    if (!readable) {
        char *text = xasprintf("may not read %.*s of table %s", (int)buffer_length(&columns),
                               columns.bytes + columns.start, subject_table(subject));
        report(subject, PROBLEM_ERROR, "SELECT", subject_table(subject), text);
        free(text);
    }
    buffer_finish(&columns);
    return readable;
}

static bool check_schema(const struct subject *subject)
{
    if (subject_is(subject, TABLE_SCHEMA_USAGE))
        return true;
    char *object = xasprintf("SCHEMA %s", answer_text(subject->table, 0, TABLE_SCHEMA));
    report(subject, PROBLEM_ERROR, "USAGE", object, "may not use the schema of the table");
    free(object);
    return false;
}

/* Only the control port deletes. */
static void check_delete(const struct subject *subject)
{
    if (subject->config->has_control && !subject_is(subject, TABLE_DELETE))
        report(subject, PROBLEM_WARNING, "DELETE", subject_table(subject),
               "may not delete rows: DELETE with ?row=delete on the control port will be refused");
}

/* The guard's sessions refuse what a policy would touch (row_security), whether it hides rows or
 * shows all: it may be another tomorrow. */
void inspect_row_security(const struct subject *subject)
{
    if (!subject_is(subject, TABLE_HIDES_ROWS))
        return;
    char *remedy = xasprintf("ALTER ROLE %s BYPASSRLS;", subject_role(subject));
    subject_report(
        subject, PROBLEM_ERROR, remedy,
        "row-level security of table %s applies to role %s: the guard must not reject the "
        "keys of rows that it cannot see, so the database will refuse all that it asks; "
        "it needs a role that sees all rows, whatever the policies are",
        subject_table(subject), subject_role(subject));
    free(remedy);
}

/* All are looked at, so that one round of GRANTs is enough. */
bool inspect_permissions(const struct subject *subject)
{
    bool schema = check_schema(subject);
    bool select = check_select(subject);
    check_delete(subject);
    return schema && select;
}
