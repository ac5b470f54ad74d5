/* A server tells that it has come up or gone down, and is noted then. Sentinels, which nothing
 * depends on while enough of them are left, are looked at instead; one that is away for a moment is
 * no news.
 */
#include "keeper/parts/cache_log.h"

#include "base/log/log.h"
#include "keeper/parts/outage.h"

enum { LOOK_MS = 1000, AWAY_MS = 3000, SENTINELS_PACE_MS = 10 * 1000 };

/* ---- servers ---- */

/* One that has not been connected to yet is neither up nor down. */
static void see_server(const struct redis *redis, struct outage *down)
{
    struct redis_node node;
    redis_describe(redis, 0, &node);
    if (!node.up && node.why)
        outage_add(down, node.address[0] ? node.address : "a server of unknown address",
                   node.role == REDIS_ROLE_UNKNOWN ? NULL : redis_role_name(node.role), node.why);
}

/* How many there are; 0: no node of the cluster is known. */
static size_t see_nodes(const struct redis *redis, struct outage *down)
{
    const struct redis *node;
    size_t count = 0;
    for (int number = 0; (node = redis_next_node(redis, &number)); number++, count++)
        see_server(node, down);
    if (!count)
        see_server(redis, down);
    return count;
}

static void note_up(struct log_state *state, const struct redis *redis, size_t count)
{
    struct redis_node node;
    redis_describe(redis, 0, &node);
    if (count)
        log_state_set(state, false, "all %zu nodes", count);
    else
        log_state_set(state, false, "%s", node.address);
}

void cache_log_note(struct cache_log *log, const struct redis *redis)
{
    struct outage down = {0};
    size_t count = 0;
    if (redis_is_cluster(redis))
        count = see_nodes(redis, &down);
    else
        see_server(redis, &down);
    if (!down.count && redis_is_up(redis))
        note_up(&log->servers, redis, count);
    else if (down.count && count)
        log_state_set(&log->servers, true, "%zu of %zu nodes down: %s", down.count, count,
                      outage_text(&down));
    else if (down.count)
        log_state_set(&log->servers, true, "%s", outage_text(&down));
}

static void tell_servers(struct cache_log *log, uint64_t now)
{
    const struct log_state *state = &log->servers;
    if (!log_state_may_tell(&log->servers, now))
        return;
    if (state->is_bad)
        log_warning("cache: connection for fills and purges: %s", state->text);
    else
        log_info("cache: connection for fills and purges is up: %s", state->text);
}

/* ---- sentinels ---- */

static void look_at_sentinels(struct cache_log *log, const struct redis *redis)
{
    size_t count = redis_is_cluster(redis) ? 1 : redis_node_count(redis);
    struct outage away = {0};
    struct redis_node node;
    for (size_t i = 1; i < count; i++) {
        redis_describe(redis, i, &node);
        if (!node.up && node.why && node.down_ms >= AWAY_MS)
            outage_add(&away, node.address, NULL, node.why);
    }
    log_state_set(&log->sentinels, away.count > 0, "%s", outage_text(&away));
}

static void tell_sentinels(struct cache_log *log, uint64_t now)
{
    const struct log_state *state = &log->sentinels;
    log->sentinels.pace.period_ms = SENTINELS_PACE_MS;
    if (!log_state_may_tell(&log->sentinels, now))
        return;
    if (state->is_bad)
        log_warning("cache: sentinels that do not name a primary: %s", state->text);
    else
        log_info("cache: all sentinels name a primary again");
}

void cache_log_tell(struct cache_log *log, const struct redis *redis, uint64_t now)
{
    tell_servers(log, now);
    if (now - log->looked < LOOK_MS)
        return;
    log->looked = now;
    look_at_sentinels(log, redis);
    tell_sentinels(log, now);
}
