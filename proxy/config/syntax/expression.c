/* Words as PostgreSQL's manual has them, "Identifiers and Key Words". Where a quoted name begins
 * cannot be told without parsing constants: so what stands between any two neighbouring quotes is
 * taken for one.
 */
#include "config/syntax/expression.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* Behind the name in double quotes that the text begins with; the text itself if it has none. */
static const char *behind_quoted(const char *text)
{
    const char *at = text;
    while (*at == '"') { /* "" in a name is one quote */
        at += 1 + strcspn(at + 1, "\"");
        at += *at == '"';
    }
    return at;
}

bool expression_is_one(const char *text)
{
    static const char *const signs[] = {"(", "'", "||", "::", "->"};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (strstr(behind_quoted(text), signs[i]))
            return true;
    return false;
}

/* Takes the name over. */
static void add(struct expression_names *names, char *name)
{
    size_t i = 0;
    while (i < names->count && strcmp(names->at[i], name) != 0)
        i++;
    if (i < names->count || !*name) {
        free(name);
        return;
    }
    names->at = xrealloc(names->at, (names->count + 1) * sizeof *names->at);
    names->at[names->count++] = name;
}

/* Letters as SQL has them: every byte of a character beyond ASCII is one. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_in_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '$';
}

static char *folded(const char *word, size_t length)
{
    char *name = xstrndup(word, length);
    for (char *c = name; *c; c++)
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c | 0x20);
    return name;
}

static void add_words(struct expression_names *names, const char *at)
{
    while (*at) {
        size_t length = 0;
        while (is_in_word(at[length]))
            length++;
        if (is_letter(*at)) {
            add(names, folded(at, length));
            add(names, xstrndup(at, length));
        }
        at += length ? length : 1;
    }
}

static void add_quoted(struct expression_names *names, const char *at)
{
    while ((at = strchr(at, '"')) && strchr(at + 1, '"')) {
        at++;
        add(names, xstrndup(at, strcspn(at, "\"")));
    }
}

void expression_names_add(struct expression_names *names, const char *expression)
{
    if (!expression)
        return;
    add_words(names, expression);
    add_quoted(names, expression);
}

void expression_names_finish(struct expression_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->at[i]);
    free(names->at);
    *names = (struct expression_names){0};
}
