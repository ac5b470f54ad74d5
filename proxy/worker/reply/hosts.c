/* Whenever a client comes or goes, the hosts that have not been looked at for longest are: one
 * without clients goes itself when nothing of it counts any more. There are four looks for each
 * host that may have come; so those that could go, and have not yet been looked at, are fewer than
 * those that count.
 *
 * And these are bounded where they have no clients. Each has a hint at least, and there are
 * max_hints; or it has had large replies: a megabyte is forgotten in an eighth of a second, and
 * many of them are in ten.
 */
#include "worker/reply/hosts.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>

/* Of large replies. */
enum {
    LITTLE_PER_MS = 8 * 1024,         /* is not much, for any time */
    LITTLE_AT_ONCE = 8 * 1024 * 1024, /* nor this, behind none */
    MUCH_MS = 10 * 1000               /* so long it counts as much, after the last that was */
};

enum { LOOKS = 2 }; /* at hosts, for one client that comes or goes */

struct hint_room hosts_hint_room(const struct serving *serving)
{
    const struct config *config = serving_config(serving);
    const struct generation *generation = serving->view->generation;
    return (struct hint_room){.used = overrides_places(&serving->overrides) + serving->hints_meant,
                              .most = config->max_hints,
                              .now = clock_ms(),
                              .ttl_ms = config_ends_hints(config) ? config->hint_ttl_ms : 0,
                              .generation = generation ? generation->settled : 0};
}

static struct host *find(const struct hosts *hosts, uint64_t origin)
{
    struct span key = {(const char *)&origin, sizeof origin};
    struct keymap_node *node = keymap_find(&hosts->all, key, origin);
    return node ? container_of(node, struct host, node) : NULL;
}

static struct host *find_or_add(struct hosts *hosts, uint64_t origin)
{
    struct host *host = find(hosts, origin);
    if (host)
        return host;
    host = xcalloc(1, sizeof *host);
    host->origin = origin;
    host->node.key = (struct span){(const char *)&host->origin, sizeof host->origin};
    host->node.hash = origin;
    keymap_insert(&hosts->all, &host->node);
    return host;
}

static uint64_t large_left(const struct host *host, uint64_t now)
{
    uint64_t leaked = (now - host->large_at) * LITTLE_PER_MS;
    return host->large_bytes > leaked ? host->large_bytes - leaked : 0;
}

/* Hints that have ended do not, though they have not been counted anew yet. */
static bool counts(const struct host *host, const struct hint_room *room)
{
    return host->clients || (host->hints.count && !hint_share_has_ended(&host->hints, room)) ||
           room->now < host->much_until || large_left(host, room->now);
}

static void forget_ended(struct hosts *hosts, const struct serving *serving)
{
    struct hint_room room = hosts_hint_room(serving);
    for (unsigned looks = 0; looks < LOOKS && hosts->all.oldest; looks++) {
        struct host *host = container_of(hosts->all.oldest, struct host, node);
        keymap_remove(&hosts->all, &host->node);
        if (counts(host, &room))
            keymap_insert(&hosts->all, &host->node);
        else
            free(host);
    }
}

/* ---- clients ---- */

struct host *host_enter(struct hosts *hosts, const struct serving *serving, uint64_t origin)
{
    struct host *host = find_or_add(hosts, origin);
    host->clients++;
    forget_ended(hosts, serving);
    return host;
}

void host_leave(struct hosts *hosts, const struct serving *serving, struct host *host)
{
    host->clients--;
    forget_ended(hosts, serving);
}

void hosts_give_back(const struct serving *serving, uint64_t origin, size_t places)
{
    struct host *host = find(serving->hosts, origin);
    if (host)
        hint_share_return(&host->hints, places);
}

void hosts_grant(const struct serving *serving, uint64_t origin, size_t places)
{
    struct host *host = find(serving->hosts, origin);
    struct hint_room room = hosts_hint_room(serving);
    if (host)
        hint_share_overtake(&host->hints, &room, places);
}

/* A leaky bucket. */
void hosts_note_large(const struct serving *serving, uint64_t origin, size_t bytes)
{
    struct host *host = find_or_add(serving->hosts, origin);
    uint64_t now = clock_ms();
    host->large_bytes = bytes + large_left(host, now);
    host->large_at = now;
    if (host->large_bytes > LITTLE_AT_ONCE)
        host->much_until = now + MUCH_MS;
}

bool host_takes_much(const struct host *host)
{
    return host->much_until && clock_ms() < host->much_until;
}

void hosts_finish(struct hosts *hosts)
{
    while (hosts->all.oldest) {
        struct host *host = container_of(hosts->all.oldest, struct host, node);
        keymap_remove(&hosts->all, &host->node);
        free(host);
    }
    keymap_finish(&hosts->all);
}
