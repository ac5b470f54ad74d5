/* libpq complains as for a terminal: in several lines, one for each address that it tried, and
 * with the SQLSTATE of a refused connection only in its verbose form. Here that becomes one line
 * for the log and a state that code can compare.
 */
#include "postgres/pg_error.h"
#include "net/allocate.h"

#include <ctype.h>
#include <stdarg.h>

/* Cuts at a character's border: a half one would make the line invalid UTF-8. */
static size_t whole_characters(const char *text, size_t length)
{
    while (length > 0 && ((unsigned char)text[length - 1] & 0xC0) == 0x80)
        length--;
    return length > 0 && (unsigned char)text[length - 1] >= 0xC0 ? length - 1 : length;
}

/* Takes text as one line: white space of any length becomes one blank, none at the ends. */
static void set_line(struct pg_error *error, const char *text)
{
    char *out = error->text;
    size_t size = sizeof error->text, length = 0;
    bool blank = false;
    for (; *text; text++) {
        if (isspace((unsigned char)*text)) {
            blank = length > 0;
            continue;
        }
        if (length + 2 + blank > size) {
            length = whole_characters(out, length);
            break;
        }
        if (blank)
            out[length++] = ' ';
        blank = false;
        out[length++] = *text;
    }
    out[length] = '\0';
}

void pg_error_say(struct pg_error *error, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    error->sqlstate[0] = '\0';
    set_line(error, text);
}

/* `state` has five characters. */
static void set_sqlstate(struct pg_error *error, const char *state)
{
    memcpy(error->sqlstate, state, 5);
    error->sqlstate[5] = '\0';
}

/* Finds "28P01: " in "...FATAL:  28P01: password authentication failed". */
static char *find_sqlstate(char *text)
{
    for (char *at = strstr(text, ":  "); at; at = strstr(at + 1, ":  ")) {
        size_t length = strspn(at + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
        if (length == 5 && at[8] == ':' && at[9] == ' ')
            return at + 3;
    }
    return NULL;
}

/* Takes out what verbosity added: the states, of which the last one is kept, and the places in the
 * server's source. */
static void unverbose(struct pg_error *error, char *text)
{
    char *state, *place;
    while ((state = find_sqlstate(text))) {
        set_sqlstate(error, state);
        memmove(state - 1, state + 7, strlen(state + 7) + 1);
    }
    while ((place = strstr(text, "\nLOCATION:"))) {
        char *end = place + 1 + strcspn(place + 1, "\n");
        memmove(place, end, strlen(end) + 1);
    }
}

/* PgBouncer's words. */
static const char *remedy_of_start(const char *text)
{
    const char *parameter = strstr(text, "unsupported startup parameter");
    if (!parameter)
        return "";
    return strstr(parameter, "replication")
               ? ": a connection pooler stands between, and the log can be read from the server "
                 "itself only"
               : ": a connection pooler stands between that does not hand on what `database` (or "
                 "PGOPTIONS) sets; without those `options`, or to the server itself, it will do";
}

void pg_error_from_connection(struct pg_error *error, const PGconn *pq)
{
    char *text = allocate_text(PQerrorMessage(pq));
    memset(error, 0, sizeof *error);
    unverbose(error, text);
    set_line(error, *text ? text : "the connection failed");
    size_t length = strlen(error->text);
    snprintf(error->text + length, sizeof error->text - length, "%s", remedy_of_start(text));
    free(text);
}

/* What a person can do about it, where the server does not say so. (Its function has the same name
 * in every language.) */
static const char *remedy_of(const PGresult *result)
{
    const char *function = PQresultErrorField(result, PG_DIAG_SOURCE_FUNCTION);
    return function && !strcmp(function, "check_enable_rls")
               ? ": the guard needs a role that sees all rows (ALTER ROLE ... BYPASSRLS)"
               : "";
}

void pg_error_from_result(struct pg_error *error, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    pg_error_say(error, "%s%s%s%s", message ? message : PQresultErrorMessage(result),
                 detail ? ": " : "", detail ? detail : "", remedy_of(result));
    if (state && strlen(state) == 5)
        set_sqlstate(error, state);
}

/* Class 57P: the administrator or a crash ended the session (PostgreSQL documentation, appendix
 * A). */
bool pg_result_is_fatal(const PGresult *result)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return (severity && (strcmp(severity, "FATAL") == 0 || strcmp(severity, "PANIC") == 0)) ||
           (state && strncmp(state, "57P", 3) == 0);
}
