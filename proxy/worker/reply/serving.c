/* The little that all parts of a worker do alike. */
#include "worker/reply/serving.h"

#include "base/clock.h"
#include "base/log/log.h"

#include <stdio.h>
#include <string.h>

/* Counted, so that the end can wait until all have come back. */
void serving_ask_keeper(struct serving *serving, struct message *message)
{
    message->sender = &serving->mailbox;
    serving->asked++;
    mailbox_post(serving->keeper, message);
}

/* A tenth of the cache's places is for others; shared connections, and the keeper's, come first.
 * One for large replies is among those others: without room for it nobody is led there. */
static uint64_t own_allowed(const struct config *config, uint64_t clients)
{
    uint64_t others = clients / 10 + 4 + 2 * (uint64_t)config->cache_connections * config->workers;
    return clients > others ? (clients - others) / config->workers : 0;
}

/* The smaller of each two. What the cache has not told yet limits nothing. */
void serving_update_limits(struct serving *serving)
{
    const struct config *config = serving_config(serving);
    uint64_t clients = serving->cache_clients;
    uint64_t own = clients ? own_allowed(config, clients) : UINT64_MAX;
    serving->own_limit = config->limits.own_connections;
    if (own < serving->own_limit)
        serving->own_limit = (unsigned)own;
    serving->held_limit = config->max_output / 2;
    serving->max_bulk = config->max_bulk;
    if (serving->cache_bulk && serving->cache_bulk < serving->max_bulk)
        serving->max_bulk = serving->cache_bulk;
    counter_set(&serving->counters.own_limit, serving->own_limit);
    counter_set(&serving->counters.max_bulk, serving->max_bulk);
}

void serving_arrived(struct serving *serving, size_t bytes)
{
    serving->arrived += bytes;
    turn_add(&serving->turn, &serving->weighing);
}

void serving_tell_log(struct serving *serving, uint64_t now)
{
    const struct log_state *state = &serving->cache_state;
    if (!log_state_may_tell(&serving->cache_state, now))
        return;
    if (state->is_bad)
        log_warning("worker %u: cache connection: %s", serving->index, state->text);
    else
        log_info("worker %u: cache connection is back", serving->index);
}

void serving_log_cache(struct serving *serving, const char *why)
{
    log_state_set(&serving->cache_state, why != NULL, "%s", why ? why : "");
    serving_tell_log(serving, clock_ms());
}
