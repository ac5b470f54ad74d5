/* libpq ends user and password at the first @, and looks for it before the first / only:
 *
 *   postgresql://app:se@cret@host/shop      the host is "cret@host"
 *   postgresql://app:5/cret@host/shop       host "app", port 5, database "cret@host/shop"
 *
 * It would then ask the DNS for a part of the password, and servers, logs and messages would tell
 * it. So a string that may be meant otherwise than libpq reads it is refused.
 */
#include "config/conninfo.h"

#include "config/syntax/userinfo.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reason {
    char *text;
    size_t size;
};

static int refuse(const struct reason *reason, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Always -EINVAL, so that it can stand behind a return. */
static int refuse(const struct reason *reason, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(reason->text, reason->size, format, list);
    va_end(list);
    return -EINVAL;
}

/* Of another product's URL: how long its scheme is; 0 for what may be PostgreSQL's. */
static int foreign_scheme(const char *text)
{
    size_t length = strcspn(text, "= '@:");
    bool ours = strncmp(text, "postgres:", 9) == 0 || strncmp(text, "postgresql:", 11) == 0;
    return strncmp(text + length, "://", 3) == 0 && !ours ? (int)length : 0;
}

/* What stands behind the scheme; NULL: it is no URL. */
static const char *behind_scheme(const char *text)
{
    static const char *const schemes[] = {"postgresql://", "postgres://"};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0)
            return text + strlen(schemes[i]);
    return NULL;
}

/* Whether the last @ before the parameters is libpq's end of user and password, and these hold no
 * parameters themselves. */
static bool is_split_as_meant(const char *rest)
{
    size_t authority = strcspn(rest, "/");
    size_t place = authority + strcspn(rest + authority, "?");
    const char *first = memchr(rest, '@', authority), *last = memrchr(rest, '@', place);
    const char *asks = first ? memchr(rest, '?', (size_t)(first - rest)) : NULL;
    bool has_parameter = asks && memchr(asks, '=', (size_t)(first - asks));
    return first == last && !has_parameter;
}

/* libpq takes a list, one port a host, and finds a wrong one out only when it connects; an empty
 * place stands for the default. */
static bool ports_are_right(const char *ports)
{
    for (;; ports++) {
        size_t digits = strspn(ports, "0123456789");
        unsigned long port = strtoul(ports, NULL, 10);
        if (digits > 5 || (digits > 0 && (port == 0 || port > 65535)))
            return false;
        ports += digits;
        if (*ports != ',')
            return *ports == '\0';
    }
}

/* Of a list; an @ is part of a socket's path, and begins that of an abstract one. */
static bool hosts_are_right(const char *hosts)
{
    for (;; hosts++) {
        size_t length = strcspn(hosts, ",");
        if (*hosts != '/' && *hosts != '@' && memchr(hosts, '@', length))
            return false;
        hosts += length;
        if (!*hosts)
            return true;
    }
}

/* What libpq accepts, and would find wrong only later. */
static int check_option(const PQconninfoOption *option, const struct reason *reason)
{
    if (!option->val)
        return 0;
    if (strcmp(option->keyword, "port") == 0 && !ports_are_right(option->val))
        return refuse(reason, "a port is a number from 1 to 65535");
    if (strcmp(option->keyword, "host") == 0 && !hosts_are_right(option->val))
        return refuse(reason, "a host's name has no @: user and password are settings of their own "
                              "(host=... user=... password=...)");
    if (strcmp(option->keyword, "dbname") == 0 && behind_scheme(option->val))
        return refuse(reason, "dbname is the name of a database; a URL stands alone");
    return 0;
}

static int check_options(const PQconninfoOption *options, const struct reason *reason)
{
    int status = 0;
    for (; !status && options->keyword; options++)
        status = check_option(options, reason);
    return status;
}

/* How much of libpq's complaint can be shown: it quotes pieces of the string, any of which may be
 * the password or hold quotes itself, so that nothing is shown from the first quote on, nor of
 * what leads there. */
static int harmless_length(const char *message)
{
    static const char no_sign[] = "missing \"=\"";
    size_t start = strncmp(message, no_sign, strlen(no_sign)) == 0 ? strlen(no_sign) : 0;
    size_t length = start ? start : strcspn(message, "\"\n");
    while (length > 0 && (message[length - 1] == ' ' || message[length - 1] == ':'))
        length--;
    return length > 100 ? 100 : (int)length;
}

static int refuse_unread(const char *message, bool is_url, const struct reason *reason)
{
    int length = harmless_length(message);
    if (is_url)
        return refuse(reason,
                      "libpq cannot read this URL (%.*s); it is postgresql://user:password@"
                      "host:5432/name, and %s",
                      length, message, USERINFO_RULE);
    return refuse(reason,
                  "must be a connection string of libpq, such as postgresql://user@host:5432/name "
                  "or host=... dbname=... with '...' around values with blanks; libpq says: %.*s",
                  length, message);
}

static int check(const char *text, const struct reason *reason)
{
    char *message = NULL;
    const char *rest = behind_scheme(text);
    int foreign = foreign_scheme(text);
    if (foreign)
        return refuse(reason,
                      "%.*s:// is the URL of another database: the keys and their changes are read "
                      "from PostgreSQL, as in postgresql://user@host:5432/name",
                      foreign, text);
    if (!*text)
        return refuse(reason, "must not be empty");
    if (rest && !is_split_as_meant(rest))
        return refuse(reason,
                      "of this URL it cannot be told where the password ends: user and "
                      "password stand once, before the hosts, and %s",
                      USERINFO_RULE);
    PQconninfoOption *options = PQconninfoParse(text, &message);
    int status = options ? check_options(options, reason)
                         : refuse_unread(message ? message : "out of memory", rest, reason);
    PQconninfoFree(options);
    PQfreemem(message);
    return status;
}

int conninfo_check(const char *text, char *error, size_t size)
{
    const struct reason reason = {error, size};
    return check(text, &reason);
}
