/* Another configuration comes into force, as far as that is possible while the guard runs:
 *
 *   file ─▶ reload_read() ─▶ [a cache that it names anew is reached (keeper_cache.c)]
 *        ─▶ reload_follow() ─▶ [that cache is not the guard itself, and the database has what it
 *                                wants anew (inquiry.h)]
 *        ─▶ reload_take() ─▶ SQL for its keyspaces ─▶ a view of it ─▶ every worker
 *                                                └─▶ old values are purged ─▶ a generation, if a
 *                                                                             filter is wanted
 *
 * Keyspaces that are the same guard on by the filters that they have. What is retired rejects
 * nothing once the view has come: its lookups that are under way end by the old rule, and nothing
 * of them is cached. What is new is passed on until a generation has its filter.
 */
#include "keeper/keeper_internal.h"

#include "base/container_of.h"
#include "base/log/log.h"
#include "base/log/service.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
    sources_retry(&keeper->sources); /* what was refused may not be any more */
    if (wants_generation(before, now))
        renewal_begin(&keeper->renewal);
}

/* ---- all of it ---- */

static void use(struct keeper *keeper, struct shared_config *now)
{
    struct shared_config *before = keeper->publishing.shared;
    bool moves = config_moves_cache(before->config, now->config);
    keeper->renamed |= config_moves_database(before->config, now->config);
    before->references++;
    publishing_configure(&keeper->publishing, now);
    if (keeper->http)
        http_server_set_token(keeper->http, now->config->control_token);
    if (keeper->reloading.reload.changes.count)
        use_keyspaces(keeper, before->config, now->config);
    else
        keeper_publish(keeper, NULL);
    shared_config_release(before);
    if (moves)
        keeper_move_cache(keeper, now);
    renewal_reschedule(&keeper->renewal);
}

/* The status tells it until a file is taken. */
static void note_refusal(struct keeper *keeper, const struct reload *reload)
{
    const struct problems *problems = &reload->problems;
    keeper->refusal[0] = '\0';
    for (size_t i = 0; i < problems->count && reload->refused; i++) {
        const struct problem *problem = &problems->at[i];
        if (problem->level != PROBLEM_ERROR)
            continue;
        snprintf(keeper->refusal, sizeof keeper->refusal, "%s: %s", problem->place, problem->text);
        return;
    }
}

/* What has come of one, for whoever had it read. */
struct reloaded {
    struct publishing_wait wait;
    struct keeper *keeper;
    struct reloading reloading;
    bool over;
};

/* `done` may have the file read once more. */
static void tell(struct publishing_wait *wait)
{
    struct reloaded *reloaded = container_of(wait, struct reloaded, wait);
    struct reloading *reloading = &reloaded->reloading;
    if (reloaded->over && !reloading->reload.refused)
        log_info("configuration read again");
    service_ready();
    if (reloading->done)
        reloading->done(reloading->arg, reloaded->over ? &reloading->reload : NULL,
                        keeper_config(reloaded->keeper));
    reload_finish(&reloading->reload);
    free(reloaded);
}

/* Another may begin before it is told that this one is in force. */
static void end(struct keeper *keeper, bool over)
{
    struct reloaded *reloaded = xmalloc(sizeof *reloaded);
    *reloaded = (struct reloaded){
        .wait.done = tell, .keeper = keeper, .reloading = keeper->reloading, .over = over};
    keeper->reloading = (struct reloading){.again = keeper->reloading.again};
    if (over)
        note_refusal(keeper, &reloaded->reloading.reload);
    publishing_await(&keeper->publishing, &reloaded->wait);
}

/* Without a file that could be taken: `fresh` is NULL. */
static void take(struct keeper *keeper)
{
    struct reloading *reloading = &keeper->reloading;
    struct shared_config *now = NULL;
    if (reloading->fresh)
        now = reload_take(reloading->fresh, &reloading->reload);
    reloading->fresh = NULL;
    if (now)
        use(keeper, now);
    if (!now || reloading->reload.changes.cache_stays)
        keeper_forget_cache(keeper);
    end(keeper, true);
}

static void drop(struct keeper *keeper)
{
    keeper->reloading.fresh = NULL;
    end(keeper, false);
}

static void on_asked(void *arg, const struct inquiry_findings *found)
{
    struct keeper *keeper = arg;
    struct reloading *reloading = &keeper->reloading;
    reloading->inquiry = NULL;
    problems_append(&reloading->reload.problems, &found->problems);
    reloading->reload.by_database = found->of_database;
    if (!keeper->draining) {
        take(keeper);
        return;
    }
    config_destroy(reloading->fresh);
    drop(keeper);
}

/* The cache is asked about once it has answered, and is the one that would be used. */
static void inquire(struct keeper *keeper)
{
    struct reloading *reloading = &keeper->reloading;
    const struct config *running = keeper_config(keeper);
    struct inquiry_options options = {
        .running = keeper->publishing.shared,
        .wanted = reloading->fresh,
        .cache = config_moves_cache(running, reloading->fresh),
        .database = reload_asks_database(running, reloading->fresh, &reloading->reload),
        .done = on_asked,
        .arg = keeper};
    if (options.cache || options.database)
        reloading->inquiry = inquiry_begin(&keeper->loop, &options);
}

/* The cache's answer may come once more while others are asked. */
void keeper_go_on_reloading(struct keeper *keeper, const char *why)
{
    struct reloading *reloading = &keeper->reloading;
    const struct config *running = keeper_config(keeper);
    if (reloading->inquiry)
        return;
    if (why)
        reloading->reload.changes.cache_stays = xstrdup(why);
    if (reloading->fresh)
        reloading->fresh = reload_follow(running, reloading->fresh, &reloading->reload);
    if (reloading->fresh)
        inquire(keeper);
    if (!reloading->inquiry)
        take(keeper);
}

int keeper_reload(struct keeper *keeper, reload_done done, void *arg)
{
    static const char busy[] = "the change before is still being carried out; this one follows";
    struct reloading *reloading = &keeper->reloading;
    if (keeper->draining)
        return -ESHUTDOWN;
    if (reloading->fresh)
        return -EBUSY;
    const struct config *running = keeper_config(keeper);
    service_reloading();
    *reloading = (struct reloading){.done = done, .arg = arg};
    reloading->fresh = reload_read(running, &reloading->reload);
    bool moves = reloading->fresh && config_moves_cache(running, reloading->fresh);
    reloading->again = moves && !keeper_may_move_cache(keeper);
    if (moves && !reloading->again && !keeper_has_cache(keeper, reloading->fresh))
        keeper_ask_cache(keeper, reloading->fresh);
    else
        keeper_go_on_reloading(keeper, reloading->again ? busy : NULL);
    return 0;
}

void keeper_end_reloading(struct keeper *keeper)
{
    struct reloading *reloading = &keeper->reloading;
    if (!reloading->fresh)
        return;
    if (reloading->inquiry)
        inquiry_leave(reloading->inquiry);
    else
        config_destroy(reloading->fresh);
    drop(keeper);
}
