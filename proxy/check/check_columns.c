/* The columns of key and value: that they are there, that the role may read them, and that
 * keys can be made of them. */
#include "base/buffer.h"
#include "base/memory.h"
#include "check/check_subject.h"
#include "config/similar.h"
#include <stdlib.h>
#include <string.h>

int subject_column(const struct subject *subject, const char *name)
{
    for (int row = 0; row < PQntuples(subject->columns); row++)
        if (strcmp(answer_text(subject->columns, row, COLUMN_NAME), name) == 0)
            return row;
    return -1;
}

bool check_key_is_known(const struct subject *subject)
{
    const struct key_template *key = &subject->keyspace->key;
    for (size_t i = 0; i < key->columns; i++)
        if (subject_column(subject, key->column[i]) < 0)
            return false;
    return true;
}

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
    char *text = xstrndup(names.bytes ? names.bytes : "", buffer_length(&names));
    buffer_finish(&names);
    return text;
}

/* A name that differs only in the case of its letters is the likeliest slip. */
static void report_missing_column(const struct subject *subject, const char *setting,
                                  const char *name)
{
    const char *nearest = nearest_column(subject, name);
    bool is_key = strcmp(setting, "key") == 0;
    char *names = column_names(subject);
    char *remedy = !nearest ? NULL
                   : is_key ? xasprintf("in the key: {%s} in place of {%s}", nearest, name)
                            : xasprintf("value: %s", nearest);
    problems_add(subject->problems, PROBLEM_ERROR, subject->place, remedy,
                 "%s: table %s has no column %s%s; its columns are: %s", setting,
                 subject_table(subject), name,
                 nearest && name_distance(nearest, name) == 0 ? " (the case of letters counts here)"
                                                              : "",
                 names);
    free(remedy);
    free(names);
}

static void check_key_type(const struct subject *subject, int row)
{
    const char *name = answer_text(subject->columns, row, COLUMN_NAME);
    const char *type = answer_text(subject->columns, row, COLUMN_TYPE);
    if (!answer_true(subject->columns, row, COLUMN_HAS_EQUALITY))
        problems_add(subject->problems, PROBLEM_ERROR, subject->place, NULL,
                     "key: column %s is of type %s, which cannot be compared for equality; a key "
                     "needs a column that a unique index can hold, such as bigint, uuid or text",
                     name, type);
    else
        check_spelling(subject, row);
}

/* A warning: NULL may be allowed and never be there. */
static void check_nullable(const struct subject *subject, int row, const char *setting,
                           const char *meaning)
{
    if (answer_true(subject->columns, row, COLUMN_NOT_NULL))
        return;
    char *remedy = xasprintf("ALTER TABLE %s ALTER COLUMN %s SET NOT NULL;", subject_table(subject),
                             answer_text(subject->columns, row, COLUMN_QUOTED));
    problems_add(subject->problems, PROBLEM_WARNING, subject->place, remedy,
                 "%s: column %s may be NULL: %s", setting,
                 answer_text(subject->columns, row, COLUMN_NAME), meaning);
    free(remedy);
}

static void check_key_column(const struct subject *subject, const char *name)
{
    int row = subject_column(subject, name);
    if (row < 0) {
        report_missing_column(subject, "key", name);
        return;
    }
    check_key_type(subject, row);
    check_nullable(subject, row, "key", "a row without it has no key, and is never found");
}

static void check_value_column(const struct subject *subject, const char *name)
{
    int row = subject_column(subject, name);
    if (row < 0)
        report_missing_column(subject, "value", name);
    else
        check_nullable(subject, row, "value", "clients get an empty string for NULL");
}

void check_columns(const struct subject *subject)
{
    const struct keyspace *keyspace = subject->keyspace;
    for (size_t i = 0; i < keyspace->key.columns; i++)
        check_key_column(subject, keyspace->key.column[i]);
    if (keyspace->value && !keyspace->value_is_json)
        check_value_column(subject, keyspace->value);
}
