/* The columns of key and value: that they are there, that the role may read them, and that
 * keys can be made of them. */
#include "base/buffer.h"
#include "base/memory.h"
#include "base/text/identifier.h"
#include "config/syntax/similar.h"
#include "database/catalogue/subject.h"
#include "database/printed_types.h"
#include <stdlib.h>
#include <string.h>

/* NULL: none is near enough to be what was meant. */
static const char *nearest_column(const struct subject *subject, const char *name)
{
    const char *nearest = NULL;
    for (int row = 0; row < PQntuples(subject->columns); row++) {
        const char *other = answer_text(subject->columns, row, COLUMN_NAME);
        if (name_is_similar(other, name) &&
            (!nearest || name_distance(other, name) < name_distance(nearest, name)))
            nearest = other;
    }
    return nearest;
}

/* The names of the columns, or of the first dozens of them. */
static char *column_names(const struct subject *subject)
{
    enum { MOST = 40 };
    struct buffer names = {0};
    int count = PQntuples(subject->columns);
    for (int row = 0; row < count && row < MOST; row++)
        buffer_printf(&names, "%s%s", row ? ", " : "",
                      answer_text(subject->columns, row, COLUMN_NAME));
    if (count > MOST)
        buffer_printf(&names, " and %d more", count - MOST);
    return buffer_string(&names);
}

/* A name that differs only in the case of its letters is the likeliest slip. */
static void report_missing_column(const struct subject *subject, const char *setting,
                                  const char *name)
{
    const char *nearest = nearest_column(subject, name);
    bool is_key = strcmp(setting, "key") == 0;
    char *names = column_names(subject);
    char *remedy = !nearest || subject->dependency ? NULL
                   : is_key ? xasprintf("in the key: {%s} in place of {%s}", nearest, name)
                            : xasprintf("value: %s", nearest);
    subject_report(
        subject, PROBLEM_ERROR, remedy, "%s: table %s has no column %s%s%s; its columns are: %s",
        setting, subject_table(subject), name,
        nearest && name_distance(nearest, name) == 0 ? " (the case of letters counts here)" : "",
        !is_key && strpbrk(name, " -.%,") ? " (an expression stands in parentheses)" : "", names);
    free(remedy);
    free(names);
}

static void report_looked_up(const struct subject *subject, int row)
{
    char *words = printed_types_words(answer_text(subject->columns, row, COLUMN_NAME),
                                      answer_text(subject->columns, row, COLUMN_TYPE),
                                      answer_text(subject->columns, row, COLUMN_LOOKED_UP));
    subject_report(subject, PROBLEM_ERROR, NULL, "%s", words);
    free(words);
}

/* In a comparison the server takes a parameter for a row of no type, which it reads from no text,
 * whatever the index holds. */
static void report_composite(const struct subject *subject, int row)
{
    subject_report(subject, PROBLEM_ERROR, NULL,
                   "key: column %s is of type %s, a composite, and PostgreSQL compares one with no "
                   "text: its rows could not be loaded; take a column for each of its fields into "
                   "the key, or a text column",
                   answer_text(subject->columns, row, COLUMN_NAME),
                   answer_text(subject->columns, row, COLUMN_TYPE));
}

/* Equality is what the guard's own statements ask of a key column, and what a unique index is built
 * on: a json or a point has none. */
static void look_at_type(const struct subject *subject, int row)
{
    const char *name = answer_text(subject->columns, row, COLUMN_NAME);
    const char *type = answer_text(subject->columns, row, COLUMN_TYPE);
    if (!PQgetisnull(subject->columns, row, COLUMN_LOOKED_UP))
        report_looked_up(subject, row);
    else if (strcmp(answer_text(subject->columns, row, COLUMN_SPELLING), "composite") == 0)
        report_composite(subject, row);
    else if (!answer_true(subject->columns, row, COLUMN_HAS_EQUALITY))
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "key: column %s is of type %s, which cannot be compared for equality; a key "
                       "needs a column that a unique index can hold, such as bigint, uuid or text",
                       name, type);
    else
        inspect_spelling(subject, row);
}

/* A warning: NULL may be allowed and never be there. Of a view's columns nobody can say that it is
 * not. */
static void look_at_null(const struct subject *subject, int row, const char *setting,
                         const char *meaning)
{
    if (answer_true(subject->columns, row, COLUMN_NOT_NULL) || subject_is_view(subject))
        return;
    char *remedy = xasprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL;", subject_table(subject),
                             answer_text(subject->columns, row, COLUMN_QUOTED));
    subject_report(subject, PROBLEM_WARNING, remedy, "%s: column %s may be NULL: %s", setting,
                   answer_text(subject->columns, row, COLUMN_NAME), meaning);
    free(remedy);
}

/* Quoted, separated by commas; NULL: none of the key's is computed from others. */
static char *generated_columns(const struct subject *subject)
{
    const struct key_template *key = &subject->keyspace->key;
    struct buffer names = {0};
    for (size_t i = 0; i < key->columns; i++) {
        int row = subject_column(subject, key->column[i]);
        if (row >= 0 && answer_true(subject->columns, row, COLUMN_GENERATED))
            buffer_printf(&names, "%s%s", buffer_length(&names) ? ", " : "",
                          answer_text(subject->columns, row, COLUMN_QUOTED));
    }
    if (buffer_length(&names))
        return buffer_string(&names);
    buffer_finish(&names);
    return NULL;
}

void inspect_generated(const struct subject *subject)
{
    char *names = generated_columns(subject);
    if (names)
        subject_report(subject, PROBLEM_ERROR, NULL,
                       "%s: the value of %s is generated from other columns, and the stream does "
                       "not tell it; the key needs ordinary columns, or use sync: poll",
                       subject_setting(subject), names);
    free(names);
}

bool inspect_key(const struct subject *subject)
{
    const struct key_template *key = &subject->keyspace->key;
    bool known = true;
    for (size_t i = 0; i < key->columns; i++) {
        if (subject_column(subject, key->column[i]) >= 0)
            continue;
        report_missing_column(subject, subject_setting(subject), key->column[i]);
        known = false;
    }
    return known;
}

static void look_at_key_column(const struct subject *subject, const char *name)
{
    int row = subject_column(subject, name);
    if (row < 0)
        return;
    look_at_type(subject, row);
    look_at_null(subject, row, "key", "a row without it has no key, and is never found");
}

static void look_at_value_column(const struct subject *subject, const char *name)
{
    int row = subject_column(subject, name);
    if (row < 0)
        report_missing_column(subject, "value", name);
    else
        look_at_null(subject, row, "value", "clients get an empty string for NULL");
}

/* A name that looks like one. */
static void report_column_as_expression(const struct subject *subject, const char *name)
{
    char *quoted = identifier_quote(name);
    char *remedy = xasprintf("value: '%s'", quoted);
    subject_report(subject, PROBLEM_ERROR, remedy,
                   "value: %s is a column of table %s and reads as an expression; in double quotes "
                   "it is the column",
                   name, subject_table(subject));
    free(remedy);
    free(quoted);
}

void inspect_columns(const struct subject *subject)
{
    const struct keyspace *keyspace = subject->keyspace;
    for (size_t i = 0; i < keyspace->key.columns; i++)
        look_at_key_column(subject, keyspace->key.column[i]);
    if (keyspace->value)
        look_at_value_column(subject, keyspace->value);
    for (size_t i = 0; i < keyspace->columns.count; i++)
        if (subject_column(subject, keyspace->columns.at[i]) < 0)
            report_missing_column(subject, "value", keyspace->columns.at[i]);
    if (keyspace->value_expression && subject_column(subject, keyspace->value_expression) >= 0)
        report_column_as_expression(subject, keyspace->value_expression);
}
