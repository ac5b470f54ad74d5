/* Another configuration comes into force, as far as that is possible while the guard runs:
 *
 *   file ─▶ reload_config() ─▶ SQL for its keyspaces ─▶ a view of it ─▶ every worker
 *                                                  └─▶ old values are purged ─▶ a generation, if a
 *                                                                               filter is wanted
 *
 * Keyspaces that are the same guard on by the filters that they have. What is retired rejects
 * nothing once the view has come: its lookups that are under way end by the old rule, and nothing
 * of them is cached. What is new is passed on until a generation has its filter.
 */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"
#include "base/log/service.h"

/* ---- keyspaces ---- */

/* Its filter is to be another, though it is the same keyspace. What is published no more goes
 * without a build. */
static bool wants_another_filter(const struct keyspace *before, const struct keyspace *now)
{
    bool publishes = now->publish.key && !config_same_publish(&before->publish, &now->publish);
    return before->filter != now->filter || publishes ||
           before->false_positive_rate != now->false_positive_rate;
}

static bool wants_generation(const struct config *before, const struct config *now)
{
    bool wanted = now->keyspace_count > before->keyspace_count;
    for (size_t i = 0; i < before->keyspace_count; i++)
        wanted |= !now->keyspaces[i].retired &&
                  wants_another_filter(&before->keyspaces[i], &now->keyspaces[i]);
    return wanted;
}

/* What was cached of it is not purged any more when its row changes, or is not what would be cached
 * now. */
static bool is_old(const struct keyspace *before, const struct keyspace *now)
{
    return !before->retired && (now->retired || !config_same_values(before, now));
}

static void purge_old(struct keeper *keeper, const struct config *before, const struct config *now)
{
    for (size_t i = 0; i < before->keyspace_count; i++)
        if (is_old(&before->keyspaces[i], &now->keyspaces[i]))
            purging_outdated(&keeper->purging, (int)i);
}

static void use_keyspaces(struct keeper *keeper, const struct config *before,
                          const struct config *now)
{
    loading_use_keyspaces(&keeper->loading, now);
    checking_use_keyspaces(&keeper->checking, now);
    keeper_publish(keeper, NULL);
    replication_use_keyspaces(&keeper->replication);
    standings_use_keyspaces(&keeper->standings);
    purge_old(keeper, before, now);
    if (wants_generation(before, now))
        renewal_begin(&keeper->renewal);
}

/* ---- all of it ---- */

bool keeper_reload(struct keeper *keeper, struct reload *reload)
{
    struct shared_config *before = keeper->publishing.shared;
    if (keeper->draining)
        return false;
    service_reloading();
    struct shared_config *now = reload_config(before, reload);
    service_ready();
    if (!now)
        return true;
    before->references++;
    publishing_configure(&keeper->publishing, now);
    if (keeper->http)
        http_server_set_token(keeper->http, now->config->control_token);
    if (reload->changes.count)
        use_keyspaces(keeper, before->config, now->config);
    else
        keeper_publish(keeper, NULL);
    shared_config_release(before);
    renewal_reschedule(&keeper->renewal);
    log_info("configuration read again");
    return true;
}
