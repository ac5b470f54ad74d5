/* Words are looked for outside of double quotes alone: whatever stands in these is a name. */
#include "config/syntax/dependency.h"

#include "base/memory.h"
#include "base/text/identifier.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* The first place of `word` in the text, or NULL. */
static const char *find(const char *text, const char *word)
{
    bool quoted = false;
    for (; *text; text++) {
        quoted ^= *text == '"';
        if (!quoted && strncasecmp(text, word, strlen(word)) == 0)
            return text;
    }
    return NULL;
}

/* A new string: without the spaces around it. */
static char *trimmed(const char *text, size_t length)
{
    while (length && *text == ' ') {
        text++;
        length--;
    }
    while (length && text[length - 1] == ' ')
        length--;
    return xstrndup(text, length);
}

static int read_column(char **name, const char *text, size_t length, const char **error)
{
    char *word = trimmed(text, length);
    int status = column_name_parse(word, name, error);
    free(word);
    return status;
}

/* order_id = id */
static int read_pair(struct dependency *out, const char *text, const char **error)
{
    size_t room = (out->columns + 1) * sizeof(char *);
    const char *equals = find(text, "=");
    *error = "behind `on` stands a column of that table, an = and a column of the key, as in "
             "order_lines on order_id = id; more such pairs follow behind `and`";
    if (!equals)
        return -EINVAL;
    out->column = xrealloc(out->column, room);
    out->key_column = xrealloc(out->key_column, room);
    out->column[out->columns] = out->key_column[out->columns] = NULL;
    size_t place = out->columns++;
    int status = read_column(&out->column[place], text, (size_t)(equals - text), error);
    if (!status)
        status = read_column(&out->key_column[place], equals + 1, strlen(equals + 1), error);
    return status;
}

static int read_pairs(struct dependency *out, const char *text, const char **error)
{
    int status = 0;
    while (text && !status) {
        const char *end = find(text, " and ");
        char *pair = xstrndup(text, end ? (size_t)(end - text) : strlen(text));
        status = read_pair(out, pair, error);
        free(pair);
        text = end ? end + strlen(" and ") : NULL;
    }
    return status;
}

int dependency_parse(struct dependency *out, const char *text, const char **error)
{
    const char *on = find(text, " on ");
    char *table = trimmed(text, on ? (size_t)(on - text) : strlen(text));
    *out = (struct dependency){.text = xstrdup(text)};
    int status = table_name_parse(table, &out->schema, &out->name, error);
    free(table);
    if (!status && on)
        status = read_pairs(out, on + strlen(" on "), error);
    if (status)
        dependency_finish(out);
    return status;
}

static void finish_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

void dependency_finish(struct dependency *dependency)
{
    free(dependency->text);
    free(dependency->schema);
    free(dependency->name);
    finish_names(dependency->column, dependency->columns);
    finish_names(dependency->key_column, dependency->columns);
    *dependency = (struct dependency){0};
}

struct key_template dependency_key(const struct dependency *dependency,
                                   const struct key_template *key)
{
    struct key_template out = *key;
    size_t told = 0;
    for (size_t i = 0; i < key->columns; i++) {
        for (size_t j = 0; j < dependency->columns; j++)
            if (strcmp(dependency->key_column[j], key->column[i]) == 0) {
                out.column[i] = dependency->column[j];
                told++;
                break;
            }
    }
    out.columns = told == key->columns && told == dependency->columns ? told : 0;
    return out;
}

/* ---- all of a keyspace ---- */

static bool same(const char *one, const char *other)
{
    return one && other ? strcmp(one, other) == 0 : one == other;
}

static bool equal(const struct dependency *one, const struct dependency *other)
{
    bool is = same(one->schema, other->schema) && same(one->name, other->name) &&
              one->columns == other->columns;
    for (size_t i = 0; i < one->columns && is; i++)
        is = same(one->column[i], other->column[i]) &&
             same(one->key_column[i], other->key_column[i]);
    return is;
}

bool dependencies_equal(const struct dependencies *one, const struct dependencies *other)
{
    bool are = one->count == other->count;
    for (size_t i = 0; i < one->count && are; i++)
        are = equal(&one->at[i], &other->at[i]);
    return are;
}

void dependencies_copy(struct dependencies *to, const struct dependencies *from)
{
    const char *error;
    *to = (struct dependencies){xcalloc(from->count, sizeof *to->at), from->count};
    for (size_t i = 0; i < from->count; i++)
        if (dependency_parse(&to->at[i], from->at[i].text, &error) < 0)
            abort(); /* the same text was parsed before */
}

void dependencies_finish(struct dependencies *dependencies)
{
    for (size_t i = 0; i < dependencies->count; i++)
        dependency_finish(&dependencies->at[i]);
    free(dependencies->at);
    *dependencies = (struct dependencies){0};
}
