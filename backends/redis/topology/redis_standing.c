/* Lines of "name:value". Those of replicas are "slave0:ip=127.0.0.1,port=6380,state=online,...", in
 * which newer versions have more members than older ones.
 */
#include "redis/topology/redis_standing.h"

#include <stdio.h>
#include <stdlib.h>

static const char *next_line(const char *at)
{
    at = strchr(at, '\n');
    return at ? at + 1 : NULL;
}

/* NULL: there is none. */
static const char *field(const char *text, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = text; at; at = next_line(at))
        if (strncmp(at, name, length) == 0 && at[length] == ':')
            return at + length + 1;
    return NULL;
}

static bool is(const char *text, const char *name, const char *value)
{
    const char *found = field(text, name);
    return found && strcspn(found, "\r\n") == strlen(value) &&
           strncmp(found, value, strlen(value)) == 0;
}

/* A replica has its own count of bytes, too, as a primary of others: that is not meant. */
static uint64_t offset_of(const char *text, enum redis_role role)
{
    const char *found =
        field(text, role == REDIS_REPLICA ? "slave_repl_offset" : "master_repl_offset");
    return found && *found != '-' ? strtoull(found, NULL, 10) : 0;
}

void redis_standing_read(struct redis_standing *out, const char *text)
{
    const char *history = field(text, "master_replid");
    *out = (struct redis_standing){.role = redis_role_read(text)};
    out->is_linked =
        is(text, "master_link_status", "up") && is(text, "master_sync_in_progress", "0");
    out->offset = offset_of(text, out->role);
    if (history && strcspn(history, "\r\n") < sizeof out->history)
        snprintf(out->history, sizeof out->history, "%.*s", (int)strcspn(history, "\r\n"), history);
}

/* ---- who follows ---- */

static bool member(const char *line, size_t length, const char *name, char *out, size_t size)
{
    const char *end = line + length;
    for (const char *at = line; at && at < end; at = memchr(at, ',', (size_t)(end - at))) {
        at += *at == ',';
        size_t left = (size_t)(end - at), own = strcspn(at, ",\r\n");
        if (left > strlen(name) && strncmp(at, name, strlen(name)) == 0 && own <= left &&
            own - strlen(name) < size) {
            snprintf(out, size, "%.*s", (int)(own - strlen(name)), at + strlen(name));
            return true;
        }
    }
    return false;
}

/* The members of the next who is online, and their length. NULL: there is no more. */
static const char *next_online(const char **at, size_t *length)
{
    char state[16];
    while (*at) {
        const char *line = *at;
        *at = next_line(line);
        size_t digits = strncmp(line, "slave", 5) == 0 ? strspn(line + 5, "0123456789") : 0;
        if (!digits || line[5 + digits] != ':')
            continue;
        line += 6 + digits;
        *length = strcspn(line, "\r\n");
        if (member(line, *length, "state=", state, sizeof state) && strcmp(state, "online") == 0)
            return line;
    }
    return NULL;
}

bool redis_standing_next(const char **at, struct redis_place *place)
{
    char host[REDIS_HOST_SIZE], port[8];
    size_t length;
    for (const char *line; (line = next_online(at, &length));)
        if (member(line, length, "ip=", host, sizeof host) &&
            member(line, length, "port=", port, sizeof port) && redis_place_set(place, host, port))
            return true;
    return false;
}

unsigned redis_standing_acknowledged(const char *text, uint64_t offset)
{
    char done[24];
    size_t length;
    unsigned count = 0;
    for (const char *line; (line = next_online(&text, &length));)
        if (member(line, length, "offset=", done, sizeof done) && done[0] >= '0' &&
            done[0] <= '9' && strtoull(done, NULL, 10) >= offset)
            count++;
    return count;
}
