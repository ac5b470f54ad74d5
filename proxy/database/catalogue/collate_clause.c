#include "database/catalogue/collate_clause.h"

#include <string.h>
#include <strings.h>

/* Every byte of a character beyond ASCII is a letter. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80);
}

static bool is_in_word(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '$';
}

static const char *behind_word(const char *at)
{
    while (is_in_word(*at))
        at++;
    return at;
}

/* Behind the quote that ends what begins with this one. One that is doubled begins another piece at
 * once. */
static const char *behind_quoted(const char *at, bool escapes)
{
    char quote = *at++;
    while (*at && *at != quote)
        at += escapes && *at == '\\' && at[1] ? 2 : 1;
    return at + (*at == quote);
}

/* E'it''s one': all of its pieces take a backslash for an escape. */
static const char *behind_escaped(const char *at)
{
    while (*at == '\'')
        at = behind_quoted(at, true);
    return at;
}

/* $$ or $tag$, up to where it comes again; a $ alone, as in $1, is none. */
static const char *behind_dollars(const char *at)
{
    const char *tag = at + 1;
    while (is_in_word(*tag) && *tag != '$')
        tag++;
    size_t length = (size_t)(tag + 1 - at);
    if (*tag != '$' || (at[1] >= '0' && at[1] <= '9'))
        return at + 1;
    const char *end = tag + 1;
    while (*end && strncmp(end, at, length) != 0)
        end++;
    return *end ? end + length : end;
}

/* They nest. */
static const char *behind_comment(const char *at)
{
    unsigned depth = 0;
    do {
        bool begins = strncmp(at, "/*", 2) == 0, ends = strncmp(at, "*/", 2) == 0;
        depth = depth + begins - ends;
        at += begins || ends ? 2 : 1;
    } while (*at && depth > 0);
    return at;
}

static const char *behind_blanks(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\n\r\f\v");
        if (strncmp(at, "--", 2) == 0)
            at += strcspn(at, "\r\n");
        else if (strncmp(at, "/*", 2) == 0)
            at = behind_comment(at);
        else
            return at;
    }
}

/* Of what is neither blank nor a comment. */
static const char *behind_token(const char *at)
{
    if ((*at == 'e' || *at == 'E') && at[1] == '\'')
        return behind_escaped(at + 1);
    if (is_letter(*at))
        return behind_word(at);
    if (*at == '\'' || *at == '"')
        return behind_quoted(at, false);
    return *at == '$' ? behind_dollars(at) : at + 1;
}

static const char *behind_identifier(const char *at)
{
    if (*at != '"')
        return is_letter(*at) ? behind_word(at) : at;
    while (*at == '"') /* "" in a name is one quote */
        at = behind_quoted(at, false);
    return at;
}

/* A name with its schema, if it has one; `at` itself: there is none. */
static const char *behind_name(const char *at)
{
    const char *end = behind_identifier(at), *dot = behind_blanks(end);
    while (end > at && *dot == '.') {
        end = behind_identifier(behind_blanks(dot + 1));
        dot = behind_blanks(end);
    }
    return end;
}

/* Behind a dot it is a column's name. */
bool collate_clause_next(const char *sql, struct collate_clause *clause)
{
    char before = '\0';
    for (const char *at = behind_blanks(sql), *end; *at; at = behind_blanks(end)) {
        end = behind_token(at);
        bool is_word = end - at == 7 && strncasecmp(at, "collate", 7) == 0 && before != '.';
        const char *name = is_word ? behind_blanks(end) : end;
        before = *at;
        if (is_word && behind_name(name) > name) {
            *clause = (struct collate_clause){.at = at, .name = name, .end = behind_name(name)};
            return true;
        }
    }
    return false;
}
