/* By the rules of PostgreSQL's manual, "Identifiers and Key Words". */
#include "base/text/identifier.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

void identifier_put(struct buffer *out, const char *name)
{
    buffer_append(out, "\"", 1);
    for (; *name; name++)
        buffer_append(out, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
    buffer_append(out, "\"", 1);
}

char *identifier_quote(const char *name)
{
    struct buffer out = {0};
    identifier_put(&out, name);
    return buffer_string(&out);
}

static int refuse(const char **error, const char *text)
{
    *error = text;
    return -EINVAL;
}

/* Reads the quoted name at *text and moves on behind it. No name is longer than its quoted form. */
static int read_quoted(const char **text, char **name, const char **error)
{
    char *to = *name = xmalloc(strlen(*text) + 1);
    const char *at = *text + 1;
    for (; *at && !(at[0] == '"' && at[1] != '"'); at++) {
        *to++ = *at;
        at += *at == '"';
    }
    *to = '\0';
    if (!*at)
        return refuse(error, "a quoted name without its closing quote");
    if (to == *name)
        return refuse(error, "a name between the quotes is missing");
    *text = at + 1;
    return 0;
}

/* Letters as SQL has them: every byte of a character beyond ASCII is one. */
static bool starts_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool continues_name(char c)
{
    return starts_name(c) || (c >= '0' && c <= '9') || c == '$';
}

/* PostgreSQL folds ASCII letters only, in every multi-byte encoding. */
static int read_plain(const char **text, char **name, const char **error)
{
    const char *at = *text;
    if (!starts_name(*at))
        return refuse(error, "must be table or schema.table; a name with other characters than "
                             "letters, digits and _ stands in double quotes");
    while (continues_name(*at))
        at++;
    *name = xstrndup(*text, (size_t)(at - *text));
    for (char *c = *name; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c | 0x20);
    *text = at;
    return 0;
}

static int read_name(const char **text, char **name, const char **error)
{
    return **text == '"' ? read_quoted(text, name, error) : read_plain(text, name, error);
}

/* On failure what was read so far is the caller's to free. */
static int read_table(const char *text, char **schema, char **name, const char **error)
{
    int status = read_name(&text, name, error);
    if (!status && *text == '.') {
        *schema = *name;
        *name = NULL;
        text++;
        status = read_name(&text, name, error);
    }
    if (!status && *text == '.')
        return refuse(error, "must be table or schema.table; a database's name cannot stand here");
    if (!status && *text)
        return refuse(error, "must be table or schema.table; a name with other characters than "
                             "letters, digits and _ stands in double quotes");
    return status;
}

int table_name_parse(const char *text, char **schema, char **name, const char **error)
{
    *schema = *name = NULL;
    int status = read_table(text, schema, name, error);
    if (status) {
        free(*schema);
        free(*name);
        *schema = *name = NULL;
    }
    return status;
}

int column_name_parse(const char *text, char **name, const char **error)
{
    *name = NULL;
    if (!*text)
        return refuse(error, "the column's name is missing");
    if (*text != '"') {
        *name = xstrdup(text);
        return 0;
    }
    int status = read_quoted(&text, name, error);
    if (!status && *text)
        status = refuse(error, "something follows the quoted name");
    if (status) {
        free(*name);
        *name = NULL;
    }
    return status;
}
