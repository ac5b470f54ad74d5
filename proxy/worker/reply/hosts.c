/* Those without clients stand in a list: the head is looked at whenever somebody comes or goes, and
 * goes itself when its hints have ended. Each of them has a hint at least, so max_hints bounds how
 * many there are. */
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

static struct host *add(struct hosts *hosts, uint64_t origin)
{
    struct host *host = xcalloc(1, sizeof *host);
    host->origin = origin;
    host->node.key = (struct span){(const char *)&host->origin, sizeof host->origin};
    host->node.hash = origin;
    keymap_insert(&hosts->all, &host->node);
    return host;
}

static void forget(struct hosts *hosts, struct host *host)
{
    keymap_remove(&hosts->all, &host->node);
    free(host);
}

/* ---- without clients ---- */

static void append(struct hosts *hosts, struct host *host)
{
    host->earlier = hosts->last_left;
    host->later = NULL;
    *(hosts->last_left ? &hosts->last_left->later : &hosts->first_left) = host;
    hosts->last_left = host;
}

static void take_out(struct hosts *hosts, struct host *host)
{
    *(host->earlier ? &host->earlier->later : &hosts->first_left) = host->later;
    *(host->later ? &host->later->earlier : &hosts->last_left) = host->earlier;
}

static void forget_ended(struct hosts *hosts, const struct serving *serving)
{
    struct hint_room room = hosts_hint_room(serving);
    struct host *host;
    while ((host = hosts->first_left) && hint_share_has_ended(&host->hints, &room)) {
        take_out(hosts, host);
        forget(hosts, host);
    }
}

/* ---- clients ---- */

struct host *host_enter(struct hosts *hosts, const struct serving *serving, uint64_t origin)
{
    struct host *host = find(hosts, origin);
    if (!host)
        host = add(hosts, origin);
    else if (!host->clients)
        take_out(hosts, host);
    host->clients++;
    forget_ended(hosts, serving);
    return host;
}

void host_leave(struct hosts *hosts, const struct serving *serving, struct host *host)
{
    forget_ended(hosts, serving);
    if (--host->clients)
        return;
    if (host->hints.count)
        append(hosts, host);
    else
        forget(hosts, host);
}

void hosts_give_back(const struct serving *serving, uint64_t origin, size_t places)
{
    struct host *host = find(serving->hosts, origin);
    if (!host)
        return;
    hint_share_return(&host->hints, places);
    if (host->clients || host->hints.count)
        return;
    take_out(serving->hosts, host);
    forget(serving->hosts, host);
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
    struct host *host = find(serving->hosts, origin);
    if (!host)
        return;
    uint64_t now = clock_ms(), leaked = (now - host->large_at) * LITTLE_PER_MS;
    host->large_bytes = bytes + (host->large_bytes > leaked ? host->large_bytes - leaked : 0);
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
    struct host *host;
    while ((host = hosts->first_left)) {
        take_out(hosts, host);
        forget(hosts, host);
    }
    keymap_finish(&hosts->all);
}
