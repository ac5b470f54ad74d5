/* The cache's URL.
 *
 *   redis://user:password@host:port/db          rediss:// for TLS
 *           └ parse_user ┘└parse_host┘└ parse_db
 *
 * No error quotes any of it, for there is a password in it.
 */
#include "config/syntax/cache_url.h"

#include "base/hex.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int refuse(const char **error, const char *text)
{
    *error = text;
    return -EINVAL;
}

/* A new string with %XX replaced, or NULL. %00 is refused: what follows it would be lost. */
static char *decode(const char *text, size_t length)
{
    char *out = xmalloc(length + 1), *to = out;
    for (size_t i = 0; i < length; i++, to++) {
        *to = text[i];
        if (text[i] != '%')
            continue;
        int byte = i + 2 < length ? hex_byte(text + i + 1) : -1;
        if (byte <= 0) {
            free(out);
            return NULL;
        }
        *to = (char)byte;
        i += 2;
    }
    *to = '\0';
    return out;
}

static int parse_user(struct cache_url *out, const char *text, size_t length, const char **error)
{
    const char *colon = memchr(text, ':', length);
    if (!colon)
        return refuse(error, "before the @ stands user:password, or :password alone");
    size_t user = (size_t)(colon - text);
    out->password = decode(colon + 1, length - user - 1);
    out->user = decode(text, user);
    if (!out->user || !out->password)
        return refuse(error, "a % in user or password is followed by two hexadecimal digits");
    if (!*out->password)
        return refuse(error, "the password before the @ is empty");
    if (!*out->user) {
        free(out->user);
        out->user = NULL;
    }
    return 0;
}

/* The port may be missing here, unlike in an address. address.text becomes host and port alone, as
 * it is shown in messages. */
static int parse_host(struct cache_url *out, const char *text, size_t length, const char **error)
{
    if (length == 0)
        return refuse(error, "the host is missing, as in redis://127.0.0.1:6379");
    if (memchr(text, ',', length))
        return refuse(error, "names several servers: `cache` is one, the primary, as in "
                             "redis://127.0.0.1:6379");
    char *host = xstrndup(text, length);
    const char *name_end = host[0] == '[' ? strchr(host, ']') : host;
    char *full = name_end && !strchr(name_end, ':') ? xasprintf("%s:6379", host) : xstrdup(host);
    int status = address_parse(&out->address, full, error);
    free(full);
    free(host);
    return status;
}

static int parse_db(int *db, const char *text, const char **error)
{
    size_t length = strlen(text);
    if (length > 6 || strspn(text, "0123456789") != length)
        return refuse(error, "the database is a number from 0 to 999999, as in "
                             "redis://127.0.0.1:6379/0");
    *db = (int)strtol(text, NULL, 10);
    return 0;
}

static int parse_redis(struct cache_url *out, const char *text, const char **error)
{
    size_t length = strcspn(text, "/");
    /* The last @ counts: a password may hold one that nobody escaped. */
    const char *at = memrchr(text, '@', length);
    size_t user = at ? (size_t)(at - text) : 0;
    int status = at ? parse_user(out, text, user, error) : 0;
    const char *host = at ? at + 1 : text;
    if (!status)
        status = parse_host(out, host, (size_t)(text + length - host), error);
    if (!status && text[length] == '/')
        status = parse_db(&out->db, text + length + 1, error);
    return status;
}

/* The path is not percent-decoded: it may hold a %. */
static int parse_unix(struct cache_url *out, const char *text, const char **error)
{
    const char *query = strchr(text, '?');
    char *path = xstrndup(text, query ? (size_t)(query - text) : strlen(text));
    int status = address_parse(&out->address, path, error);
    free(path);
    if (status || !query)
        return status;
    if (strncmp(query, "?db=", 4) != 0 || !query[4])
        return refuse(error, "a unix socket may be followed by ?db=NUMBER only");
    return parse_db(&out->db, query + 4, error);
}

int cache_url_parse(struct cache_url *out, const char *text, const char **error)
{
    int status;
    *out = (struct cache_url){0};
    if (strncmp(text, "redis://", 8) == 0)
        status = parse_redis(out, text + 8, error);
    else if (strncmp(text, "unix:", 5) == 0)
        status = parse_unix(out, text, error);
    else if (strncmp(text, "rediss://", 9) == 0)
        status = parse_redis(out, text + 9, error);
    else
        status = refuse(error, "must be redis://[user:password@]host[:port][/db], rediss://... for "
                               "TLS, or unix:/path[?db=N]");
    out->address.tls = strncmp(text, "rediss:", 7) == 0;
    if (status)
        cache_url_finish(out);
    return status;
}

void cache_url_finish(struct cache_url *url)
{
    address_finish(&url->address);
    free(url->user);
    free(url->password);
    *url = (struct cache_url){0};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool cache_url_equal(const struct cache_url *a, const struct cache_url *b)
{
    return address_equal(&a->address, &b->address) && same_text(a->user, b->user) &&
           same_text(a->password, b->password) && a->db == b->db;
}

void cache_url_copy(struct cache_url *to, const struct cache_url *from)
{
    *to = *from;
    address_copy(&to->address, &from->address);
    to->user = from->user ? xstrdup(from->user) : NULL;
    to->password = from->password ? xstrdup(from->password) : NULL;
}
