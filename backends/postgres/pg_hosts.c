/* libpq goes through host, hostaddr and port item by item, so the lists are turned together, by as
 * much. Only what the conninfo itself says is seen here: hosts of the environment (PGHOST) or of a
 * service file count as one, and are left to libpq.
 */
#include "postgres/pg_hosts.h"
#include "net/allocate.h"

#include <libpq-fe.h>

static unsigned count_items(const char *list)
{
    unsigned count = 1;
    for (; *list; list++)
        count += *list == ',';
    return count;
}

/* Of the parsed conninfo; NULL when it is not given. */
static const char *value_of(const PQconninfoOption *parsed, const char *keyword)
{
    for (; parsed && parsed->keyword; parsed++)
        if (strcmp(parsed->keyword, keyword) == 0)
            return parsed->val && *parsed->val ? parsed->val : NULL;
    return NULL;
}

static unsigned count_hosts(const PQconninfoOption *parsed)
{
    const char *addresses = value_of(parsed, "hostaddr"), *names = value_of(parsed, "host");
    return addresses ? count_items(addresses) : names ? count_items(names) : 1;
}

unsigned pg_hosts_count(const char *conninfo)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo, NULL);
    unsigned count = count_hosts(parsed);
    PQconninfoFree(parsed);
    return count;
}

/* "a,b,c" from its second item on: "b,c,a". NULL when it is no list of `count` items: one port is
 * every host's. */
static char *turn(const char *list, unsigned count, unsigned first)
{
    if (!list || count_items(list) != count)
        return NULL;
    const char *rest = list;
    for (unsigned i = 0; i < first; i++)
        rest = strchr(rest, ',') + 1;
    size_t moved = (size_t)(rest - list), kept = strlen(rest);
    char *turned = allocate(moved + kept + 1, 1);
    memcpy(turned, rest, kept);
    turned[kept] = ',';
    memcpy(turned + kept + 1, list, moved - 1);
    return turned;
}

void pg_hosts_begin_with(struct pg_hosts *hosts, const char *conninfo, unsigned first)
{
    PQconninfoOption *parsed = PQconninfoParse(conninfo, NULL);
    unsigned count = count_hosts(parsed);
    *hosts = (struct pg_hosts){0};
    if (first % count) {
        hosts->host = turn(value_of(parsed, "host"), count, first % count);
        hosts->hostaddr = turn(value_of(parsed, "hostaddr"), count, first % count);
        hosts->port = turn(value_of(parsed, "port"), count, first % count);
    }
    PQconninfoFree(parsed);
}

void pg_hosts_finish(struct pg_hosts *hosts)
{
    free(hosts->host);
    free(hosts->hostaddr);
    free(hosts->port);
    *hosts = (struct pg_hosts){0};
}
