/* The cache's URL.
 *
 *   redis://user:password@host:port/db          rediss:// for TLS
 *           └ parse_user ┘└parse_host┘└ parse_db
 *
 *   redis-sentinel://user:password@host:port,host:port/name/db
 *                    └ parse_user ┘└── parse_seeds ──┘
 *
 *   redis-cluster://user:password@host:port,host:port
 *                   └ parse_user ┘└── parse_seeds ──┘
 *
 * No error quotes any of it, for there is a password in it.
 */
#include "config/syntax/cache_url.h"

#include "base/buffer.h"
#include "base/hex.h"
#include "base/memory.h"
#include "base/span.h"
#include "config/syntax/userinfo.h"

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
        return refuse(
            error, "a % in user or password is followed by two hexadecimal digits: " USERINFO_RULE);
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
static int parse_host(struct address *out, const char *text, size_t length, unsigned port,
                      const char **error)
{
    if (length == 0)
        return refuse(error, "the host is missing, as in redis://127.0.0.1:6379");
    char *host = xstrndup(text, length);
    const char *name_end = host[0] == '[' ? strchr(host, ']') : host;
    char *full =
        name_end && !strchr(name_end, ':') ? xasprintf("%s:%u", host, port) : xstrdup(host);
    int status = address_parse(out, full, error);
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

/* What stands before the first / and behind the user, if there is one. An @ behind that / is, for
 * all that can be told, the end of a password with a / in it: the hosts would be made of its
 * beginning, and the rest be told in messages. */
static int parse_authority(struct cache_url *out, const char *text, struct span *hosts,
                           const char **error)
{
    size_t length = strcspn(text, "/");
    /* The last @ counts: a password may hold one that nobody escaped. */
    const char *at = memrchr(text, '@', length);
    *hosts =
        at ? (struct span){at + 1, length - (size_t)(at + 1 - text)} : (struct span){text, length};
    if (strchr(text + length, '@'))
        return refuse(error, "an @ stands behind the first /: " USERINFO_RULE);
    return at ? parse_user(out, text, (size_t)(at - text), error) : 0;
}

static int parse_redis(struct cache_url *out, const char *text, const char **error)
{
    struct span host;
    int status = parse_authority(out, text, &host, error);
    if (!status && memchr(host.at, ',', host.length))
        return refuse(error, "names several servers: `cache` is one, the primary, as in "
                             "redis://127.0.0.1:6379; of sentinels redis-sentinel:// has several");
    if (!status)
        status = parse_host(&out->address, host.at, host.length, 6379, error);
    const char *rest = host.at + host.length;
    if (!status && *rest == '/')
        status = parse_db(&out->db, rest + 1, error);
    return status;
}

/* ---- those who know where it is ---- */

/* At least one, in the order in which they are written. One that is wrong is counted,
 * too, so that cache_url_finish() frees what it may have left. */
static int parse_seeds(struct cache_url *out, struct span hosts, unsigned port, const char **error)
{
    out->seeds = xcalloc(CACHE_SEEDS, sizeof *out->seeds);
    for (;;) {
        const char *comma = memchr(hosts.at, ',', hosts.length);
        size_t length = comma ? (size_t)(comma - hosts.at) : hosts.length;
        if (out->seed_count == CACHE_SEEDS)
            return refuse(error, "names more than 16 servers");
        struct address *seed = &out->seeds[out->seed_count];
        int status = parse_host(seed, hosts.at, length, port, error);
        out->seed_count++;
        if (status)
            return status;
        if (!comma)
            break;
        hosts = (struct span){comma + 1, hosts.length - length - 1};
    }
    address_copy(&out->address, &out->seeds[0]);
    return 0;
}

static int parse_primary(struct cache_url *out, const char *text, const char **error)
{
    size_t length = *text == '/' ? strcspn(text + 1, "/") : 0;
    if (!length)
        return refuse(error, "the name of the primary is missing, as in "
                             "redis-sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster");
    out->primary = decode(text + 1, length);
    if (!out->primary)
        return refuse(error, "a % in the primary's name is followed by two hexadecimal digits");
    const char *rest = text + 1 + length;
    return *rest ? parse_db(&out->db, rest + 1, error) : 0;
}

static int parse_sentinel(struct cache_url *out, const char *text, const char **error)
{
    struct span hosts;
    int status = parse_authority(out, text, &hosts, error);
    if (!status)
        status = parse_seeds(out, hosts, 26379, error);
    if (!status)
        status = parse_primary(out, hosts.at + hosts.length, error);
    return status;
}

/* A cluster has one database. */
static int parse_cluster(struct cache_url *out, const char *text, const char **error)
{
    struct span hosts;
    int status = parse_authority(out, text, &hosts, error);
    if (!status)
        status = parse_seeds(out, hosts, 6379, error);
    const char *rest = hosts.at + hosts.length;
    if (!status && *rest && strcmp(rest, "/") != 0 && strcmp(rest, "/0") != 0)
        return refuse(error, "a cluster has database 0 only: nothing follows its nodes, as in "
                             "redis-cluster://10.0.0.1:6379,10.0.0.2:6379");
    out->is_cluster = !status;
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

/* By its scheme a URL has its reader, which gets what stands behind the scheme. */
static const struct form {
    const char *scheme;
    int (*parse)(struct cache_url *out, const char *text, const char **error);
    bool tls;
} forms[] = {{"redis://", parse_redis, false},
             {"rediss://", parse_redis, true},
             {"redis-sentinel://", parse_sentinel, false},
             {"rediss-sentinel://", parse_sentinel, true},
             {"redis-cluster://", parse_cluster, false},
             {"rediss-cluster://", parse_cluster, true}};

int cache_url_parse(struct cache_url *out, const char *text, const char **error)
{
    const struct form *form = NULL;
    int status;
    *out = (struct cache_url){0};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strncmp(text, forms[i].scheme, strlen(forms[i].scheme)) == 0)
            form = &forms[i];
    if (form)
        status = form->parse(out, text + strlen(form->scheme), error);
    else if (strncmp(text, "unix:", 5) == 0)
        status = parse_unix(out, text, error);
    else
        status = refuse(error, "must be redis://[user:password@]host[:port][/db], rediss://... for "
                               "TLS, redis-sentinel://host[:port],.../name[/db], "
                               "redis-cluster://host[:port],..., or unix:/path[?db=N]");
    out->address.tls = form && form->tls;
    if (status)
        cache_url_finish(out);
    return status;
}

void cache_url_finish(struct cache_url *url)
{
    address_finish(&url->address);
    free(url->user);
    free(url->password);
    free(url->primary);
    for (size_t i = 0; i < url->seed_count; i++)
        address_finish(&url->seeds[i]);
    free(url->seeds);
    *url = (struct cache_url){0};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_seeds(const struct cache_url *a, const struct cache_url *b)
{
    if (a->seed_count != b->seed_count)
        return false;
    for (size_t i = 0; i < a->seed_count; i++)
        if (!address_equal(&a->seeds[i], &b->seeds[i]))
            return false;
    return true;
}

bool cache_url_equal(const struct cache_url *a, const struct cache_url *b)
{
    return address_equal(&a->address, &b->address) && same_text(a->user, b->user) &&
           same_text(a->password, b->password) && a->db == b->db &&
           a->is_cluster == b->is_cluster && same_text(a->primary, b->primary) && same_seeds(a, b);
}

static void append_place(struct buffer *out, const struct address *address)
{
    buffer_printf(out, "\n%s:%u", address->path ? address->path : address->host,
                  (unsigned)address->port);
}

char *cache_url_place(const struct cache_url *url)
{
    struct buffer out = {0};
    buffer_printf(&out, "%s\n%s\n%d", url->is_cluster ? "cluster" : "server",
                  url->primary ? url->primary : "", url->db);
    append_place(&out, &url->address);
    for (size_t i = 0; i < url->seed_count; i++)
        append_place(&out, &url->seeds[i]);
    return buffer_string(&out);
}

void cache_url_copy(struct cache_url *to, const struct cache_url *from)
{
    *to = *from;
    address_copy(&to->address, &from->address);
    to->user = from->user ? xstrdup(from->user) : NULL;
    to->password = from->password ? xstrdup(from->password) : NULL;
    to->primary = from->primary ? xstrdup(from->primary) : NULL;
    to->seeds = from->seed_count ? xcalloc(from->seed_count, sizeof *to->seeds) : NULL;
    for (size_t i = 0; i < from->seed_count; i++)
        address_copy(&to->seeds[i], &from->seeds[i]);
}
