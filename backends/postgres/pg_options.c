/* Switches are split and read as the server does it (pg_split_opts() and
 * process_postgres_switches() of PostgreSQL).
 */
#include "postgres/pg_options.h"

#include "net/allocate.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdlib.h>
#include <strings.h>

char *pg_options_own(const char *conninfo)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo, NULL);
    const char *own = getenv("PGOPTIONS");
    for (const PQconninfoOption *option = parsed; option && option->keyword; option++)
        if (!strcmp(option->keyword, "options") && option->val)
            own = option->val;
    char *copy = own ? allocate_text(own) : NULL;
    PQconninfoFree(parsed);
    return copy;
}

/* ---- switches ---- */

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* The next word from *at on, without its backslashes, on the heap; NULL: there is none. */
static char *next_word(const char **at)
{
    const char *from = *at;
    while (is_blank(*from))
        from++;
    if (!*from)
        return NULL;
    char *word = allocate(strlen(from) + 1, 1), *to = word;
    bool escaped = false;
    for (; *from && (escaped || !is_blank(*from)); from++) {
        escaped = !escaped && *from == '\\';
        if (!escaped)
            *to++ = *from;
    }
    *at = from;
    return word;
}

/* "name=value", on the heap, of the next switch that sets something; NULL: there is none. */
static char *next_setting(const char **at)
{
    char *word, *setting;
    while ((word = next_word(at))) {
        bool is_long = !strncmp(word, "--", 2), is_short = !strncmp(word, "-c", 2);
        if ((is_long || is_short) && word[2])
            setting = allocate_text(word + 2);
        else if (is_short)
            setting = next_word(at);
        else
            setting = strcmp(word, "-e") == 0 ? allocate_text("DateStyle=euro") : NULL;
        free(word);
        if (setting)
            return setting;
    }
    return NULL;
}

/* Its value, if it is of that name; else NULL. Hyphens are underscores in a name. */
static const char *value_of(const char *setting, const char *name)
{
    for (; *name; name++, setting++) {
        char c = *setting == '-' ? '_' : *setting;
        if (strncasecmp(&c, name, 1) != 0)
            return NULL;
    }
    return *setting == '=' ? setting + 1 : NULL;
}

char *pg_options_value(const char *own, const char *name)
{
    char *last = NULL, *setting;
    const char *at = own ? own : "";
    while ((setting = next_setting(&at))) {
        const char *value = value_of(setting, name);
        if (value) {
            free(last);
            last = allocate_text(value);
        }
        free(setting);
    }
    return last;
}

/* ---- what is printed so that it does not read back ---- */

/* 15 digits or fewer, of the 17 that a double may need. */
static bool rounds(const char *value)
{
    return strtol(value, NULL, 0) < 1;
}

/* {NULL} is an array of the text "NULL" then. As the server reads a boolean: any beginning of a
 * word that is no other's. */
static bool is_off(const char *value)
{
    static const char *const words[] = {"false", "no", "off"};
    size_t length = strlen(value);
    if (!strcmp(value, "0"))
        return true;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length > 0 && strncasecmp(value, words[i], length) == 0)
            return true;
    return false;
}

/* The others say a zone by letters that are not its alone, and days and months in an order that
 * they may not be read in. */
static bool is_no_iso(const char *value)
{
    static const char *const styles[] = {"postgres", "sql", "german"};
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        for (const char *at = value; *at; at++)
            if (strncasecmp(at, styles[i], strlen(styles[i])) == 0)
                return true;
    return false;
}

static const struct lossy {
    const char *name;
    bool (*loses)(const char *value);
    const char *what, *remedy;
} lossy[] = {
    {"extra_float_digits", rounds, "prints floating-point numbers rounded",
     "take it out, and let `value` round where that is wanted"},
    {"array_nulls", is_off, "reads a NULL in an array as a text", "take it out"},
    {"DateStyle", is_no_iso, "prints times that are read as others, or not at all",
     "take it out, or set it to ISO, and let `value` have to_char() where another style is wanted"},
};

/* As often as it is set: DateStyle has parts. */
static const struct lossy *find_lossy(const char *setting)
{
    for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++) {
        const char *value = value_of(setting, lossy[i].name);
        if (value && lossy[i].loses(value))
            return &lossy[i];
    }
    return NULL;
}

static int check(const char *own, struct pg_error *error)
{
    const char *at = own ? own : "";
    const struct lossy *found = NULL;
    char *setting;
    while (!found && (setting = next_setting(&at))) {
        found = find_lossy(setting);
        if (found)
            pg_error_say(error,
                         "the `options` of the connection (or PGOPTIONS) have %s, which %s: a row "
                         "would not be found by the text of its key; %s",
                         setting, found->what, found->remedy);
        free(setting);
    }
    return found ? -EINVAL : 0;
}

int pg_conninfo_check(const char *conninfo, struct pg_error *error)
{
    char *why = NULL;
    PQconninfoOption *parsed = PQconninfoParse(conninfo, &why);
    if (!parsed)
        pg_error_say(error, "%s", why ? why : "out of memory");
    char *own = parsed ? pg_options_own(conninfo) : NULL;
    int rc = parsed ? check(own, error) : -EINVAL;
    free(own);
    PQfreemem(why);
    PQconninfoFree(parsed);
    return rc;
}
