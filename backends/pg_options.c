/* A key is the text that PostgreSQL prints. What the builder read, what a load compares and what
 * the log sends must be printed alike, so nothing of it may depend on when a connection was opened:
 * ALTER DATABASE, ALTER ROLE and the server's own file change the defaults of later ones.
 */
#include "pg_options.h"

#include "allocate.h"

#include <pthread.h>

/* PostgreSQL's own defaults. */
static const char printing[] = "-c DateStyle=ISO,MDY -c IntervalStyle=postgres "
                               "-c extra_float_digits=1 -c bytea_output=hex";
static const char zone_option[] = "-c TimeZone=";

/* The time zone is the one that the first connection found, for as long as the process runs: keys
 * that applications have got used to do not change under them. Sessions are opened by threads of
 * their own. */
struct zone {
    char *conninfo, *name;
    struct zone *next;
};

static struct zone *zones;
static pthread_mutex_t zones_lock = PTHREAD_MUTEX_INITIALIZER;

/* Zones are never removed, nor changed. */
static const struct zone *find(const char *conninfo)
{
    const struct zone *zone = zones;
    while (zone && strcmp(zone->conninfo, conninfo) != 0)
        zone = zone->next;
    return zone;
}

/* The zone's name, or NULL. */
static const char *zone_of(const char *conninfo)
{
    pthread_mutex_lock(&zones_lock);
    const struct zone *zone = find(conninfo);
    pthread_mutex_unlock(&zones_lock);
    return zone ? zone->name : NULL;
}

/* Several that connect at the same time may all be the first. */
static void keep_first(const char *conninfo, const char *name)
{
    pthread_mutex_lock(&zones_lock);
    if (!find(conninfo)) {
        struct zone *zone = allocate(1, sizeof *zone);
        *zone = (struct zone){allocate_text(conninfo), allocate_text(name), zones};
        zones = zone;
    }
    pthread_mutex_unlock(&zones_lock);
}

/* The `options` that the connection would have had without ours; to be freed, or NULL. */
static char *own_options(const char *conninfo)
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

/* Blanks and backslashes end or begin something in `options`. */
static void append_escaped(char *out, const char *text)
{
    for (out += strlen(out); *text; text++) {
        if (*text == ' ' || *text == '\\')
            *out++ = '\\';
        *out++ = *text;
    }
    *out = '\0';
}

/* Of two that set the same, the later one counts: what the conninfo says goes last. */
char *pg_options_make(const char *conninfo, const char *more)
{
    const char *zone = zone_of(conninfo);
    char *own = own_options(conninfo);
    size_t size = sizeof printing + sizeof zone_option + 2 * (zone ? strlen(zone) : 0) +
                  strlen(more) + (own ? strlen(own) : 0) + 2;
    char *options = allocate(size, 1);
    strcat(strcpy(options, printing), more);
    if (zone) {
        strcat(strcat(options, " "), zone_option);
        append_escaped(options, zone);
    }
    if (own)
        strcat(strcat(options, " "), own);
    free(own);
    return options;
}

/* The server tells each connection its time zone; a pooler in between may not. One that was opened
 * without a zone of its own would follow a change of the server's. */
bool pg_options_hold(const PGconn *pq, const char *conninfo)
{
    const char *zone = PQparameterStatus(pq, "TimeZone");
    if (!zone || strstr(PQoptions(pq), zone_option))
        return true;
    keep_first(conninfo, zone);
    return false;
}
