/* What is not said is a default, the environment's (PGHOST) among them. A name that cannot be found
 * is left out as long as another can: libpq would look it up once more, and wait.
 */
#include "postgres/pg_resolve.h"

#include "net/allocate.h"

#include <arpa/inet.h>
#include <libpq-fe.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { HOSTS_MOST = 64 };

struct host {
    struct pg_resolve *resolve;
    char *name, *port; /* port: of this host alone; NULL: of all */
    bool is_name;      /* to be looked up */
    int status;        /* of that */
    struct addrinfo *found;
    uv_getaddrinfo_t request;
};

struct pg_resolve {
    pg_resolve_cb done; /* NULL: nobody waits for it any more */
    void *arg;
    unsigned first;
    unsigned pending;
    size_t count;
    struct host hosts[]; /* `count` */
};

/* ---- lists ---- */

static size_t count_items(const char *list)
{
    size_t count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* On the heap. There is one of this number. */
static char *item(const char *list, size_t number)
{
    for (; number; number--)
        list = strchr(list, ',') + 1;
    char *text = allocate_text(list);
    text[strcspn(text, ",")] = '\0';
    return text;
}

static void append(char **list, const char *text)
{
    size_t length = *list ? strlen(*list) : 0;
    char *longer = allocate(length + strlen(text) + 2, 1);
    if (*list) {
        memcpy(longer, *list, length);
        longer[length++] = ',';
    }
    strcpy(longer + length, text);
    free(*list);
    *list = longer;
}

/* ---- what libpq would connect to ---- */

/* NULL: neither the conninfo nor a default says it. */
static const char *value_of(const PQconninfoOption *parsed, const PQconninfoOption *defaults,
                            const char *keyword)
{
    const PQconninfoOption *both[] = {parsed, defaults};
    for (int i = 0; i < 2; i++)
        for (const PQconninfoOption *option = both[i]; option && option->keyword; option++)
            if (strcmp(option->keyword, keyword) == 0 && option->val && *option->val)
                return option->val;
    return NULL;
}

static bool is_name(const char *host)
{
    struct in6_addr address;
    return *host && *host != '/' && *host != '@' && inet_pton(AF_INET, host, &address) != 1 &&
           !strchr(host, ':');
}

static struct pg_resolve *create(const char *names, const char *ports)
{
    size_t count = count_items(names), port_count = ports ? count_items(ports) : 1;
    if (count > HOSTS_MOST || (port_count > 1 && port_count != count))
        return NULL;
    struct pg_resolve *resolve = allocate(1, sizeof *resolve + count * sizeof *resolve->hosts);
    resolve->count = count;
    for (size_t i = 0; i < count; i++) {
        struct host *host = &resolve->hosts[i];
        *host = (struct host){.resolve = resolve, .name = item(names, i)};
        host->port = port_count > 1 ? item(ports, i) : NULL;
        host->is_name = is_name(host->name);
    }
    return resolve;
}

static struct pg_resolve *parse(const char *conninfo)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo, NULL), *defaults = PQconndefaults();
    const char *names = value_of(parsed, defaults, "host");
    bool is_libpqs = !parsed || !names || value_of(parsed, defaults, "hostaddr") ||
                     value_of(parsed, defaults, "service");
    struct pg_resolve *resolve =
        is_libpqs ? NULL : create(names, value_of(parsed, defaults, "port"));
    PQconninfoFree(parsed);
    PQconninfoFree(defaults);
    return resolve;
}

static void destroy(struct pg_resolve *resolve)
{
    for (size_t i = 0; i < resolve->count; i++) {
        uv_freeaddrinfo(resolve->hosts[i].found);
        free(resolve->hosts[i].name);
        free(resolve->hosts[i].port);
    }
    free(resolve);
}

/* ---- what was found ---- */

/* Each address of each host, `number` of them so far; only those from `from` to before `end`. */
struct listing {
    struct pg_hosts hosts;
    unsigned number, from, end;
};

static void list(struct listing *listing, const struct host *host, const char *address)
{
    unsigned number = listing->number++;
    if (number < listing->from || number >= listing->end)
        return;
    append(&listing->hosts.host, host->name);
    append(&listing->hosts.hostaddr, address);
    if (host->port)
        append(&listing->hosts.port, host->port);
}

static void list_found(struct listing *listing, const struct host *host)
{
    char text[NI_MAXHOST];
    for (const struct addrinfo *at = host->found; at; at = at->ai_next)
        if (getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) ==
            0)
            list(listing, host, text);
}

static void list_range(struct listing *listing, const struct pg_resolve *resolve, unsigned from,
                       unsigned end)
{
    listing->number = 0;
    listing->from = from;
    listing->end = end;
    for (size_t i = 0; i < resolve->count; i++) {
        const struct host *host = &resolve->hosts[i];
        if (host->is_name)
            list_found(listing, host);
        else
            list(listing, host, "");
    }
}

/* False: there is none. */
static bool list_all(const struct pg_resolve *resolve, struct pg_hosts *hosts)
{
    struct listing listing = {0};
    list_range(&listing, resolve, 0, 0);
    unsigned count = listing.number;
    if (!count)
        return false;
    list_range(&listing, resolve, resolve->first % count, count);
    list_range(&listing, resolve, 0, resolve->first % count);
    *hosts = listing.hosts;
    return true;
}

/* In libpq's words. */
static void print_why(const struct pg_resolve *resolve, char *text, size_t size)
{
    const struct host *host = &resolve->hosts[0];
    snprintf(text, size, "could not translate host name \"%s\" to address: %s", host->name,
             host->status < 0 ? uv_strerror(host->status) : "it has none");
}

static void end(struct pg_resolve *resolve)
{
    struct pg_hosts hosts = {0};
    char why[400];
    if (resolve->done && list_all(resolve, &hosts)) {
        resolve->done(resolve->arg, &hosts, NULL);
    } else if (resolve->done) {
        print_why(resolve, why, sizeof why);
        resolve->done(resolve->arg, NULL, why);
    }
    destroy(resolve);
}

/* ---- the resolver ---- */

static void on_found(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct host *host = request->data;
    host->status = status;
    host->found = found;
    if (--host->resolve->pending == 0)
        end(host->resolve);
}

/* One that cannot even be asked for is libpq's to complain of: it need not wait for that, either.
 */
static void look_up(struct host *host, uv_loop_t *loop)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    host->request.data = host;
    host->is_name = uv_getaddrinfo(loop, &host->request, on_found, host->name, NULL, &hints) == 0;
    host->resolve->pending += host->is_name ? 1 : 0;
}

struct pg_resolve *pg_resolve_start(uv_loop_t *loop, const char *conninfo, unsigned first,
                                    pg_resolve_cb done, void *arg)
{
    struct pg_resolve *resolve = parse(conninfo);
    if (!resolve)
        return NULL;
    resolve->done = done;
    resolve->arg = arg;
    resolve->first = first;
    for (size_t i = 0; i < resolve->count; i++)
        if (resolve->hosts[i].is_name)
            look_up(&resolve->hosts[i], loop);
    if (resolve->pending)
        return resolve;
    destroy(resolve);
    return NULL;
}

void pg_resolve_cancel(struct pg_resolve *resolve)
{
    if (!resolve)
        return;
    resolve->done = NULL;
    for (size_t i = 0; i < resolve->count; i++)
        if (resolve->hosts[i].is_name)
            uv_cancel((uv_req_t *)&resolve->hosts[i].request);
}
