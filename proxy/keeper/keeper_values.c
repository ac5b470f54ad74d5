/* How the keeper keeps old values out of the cache where no row's change tells of them:
 *
 *   filled before a log was followed ─▶ unvouched ─┐  a log is followed, or the guard ends
 *   the log was lost for a while ─────▶ missed ────┼──────────────▶ purged
 *   DDL ─▶ another answer ─▶ values ───────────────┴─ at once ────▶
 *
 * Each purge says first that whatever is being loaded is old (loads_all_changed()), so that none of
 * it is filled behind the purge. What was filled before was sent before, over the same connection
 * to the cache. And what is asked later is told by the log that is followed by then, but for what
 * it told, or was over when it began, and is not visible yet: unseen.h sees to that.
 */
#include "keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"

void keeper_purge_all(struct keeper *keeper, int keyspace)
{
    loads_all_changed(keeper->loads);
    purger_keyspace(keeper->purger, keyspace);
}

/* What the serving stream had not told yet when it was lost lies before the snapshot of the
 * generation that comes after it: no log tells of it. */
void keeper_purge_missed(struct keeper *keeper)
{
    keeper->missed = false;
    for (size_t i = 0; i < keeper_config(keeper)->keyspace_count; i++)
        keeper_purge_all(keeper, (int)i);
}

/* Once rows were missed all keys will be purged. */
static void on_filling(void *arg, struct key key)
{
    struct keeper *keeper = arg;
    bool follows = keeper_config(keeper)->sync == SYNC_REPLICATION;
    if (follows && !keeper->sync && !keeper->candidate && !keeper->missed)
        unvouched_add(keeper->unvouched, key);
}

static void purge_keyspace(void *arg, int keyspace)
{
    purger_keyspace(((struct keeper *)arg)->purger, keyspace);
}

static void purge_key(void *arg, struct key key)
{
    purger_key(((struct keeper *)arg)->purger, key);
}

void keeper_purge_unvouched(struct keeper *keeper)
{
    loads_all_changed(keeper->loads);
    unvouched_give(keeper->unvouched, purge_keyspace, purge_key, keeper);
}

void keeper_vouch(struct keeper *keeper)
{
    if (keeper->missed)
        keeper_purge_missed(keeper);
    if (!keeper->sync)
        keeper_purge_unvouched(keeper);
}

static void on_altered(void *arg, int keyspace)
{
    struct keeper *keeper = arg;
    log_info("keyspace %s: a column or type that its values are made of was altered; all keys of "
             "it are deleted from the cache",
             keeper_config(keeper)->keyspaces[keyspace].name);
    keeper_purge_all(keeper, keyspace);
}

void keeper_learn_values(struct keeper *keeper, const char *answer)
{
    values_learn(keeper->values, answer, clock_ms());
}

void keeper_open_values(struct keeper *keeper, struct loads_options *loads)
{
    const struct config *config = keeper->first->config;
    keeper->unvouched = unvouched_create(config->keyspace_count, config->max_hints);
    keeper->values = values_create(&(struct values_options){
        .keyspaces = config->keyspace_count, .altered = on_altered, .arg = keeper});
    loads->filling = on_filling;
    loads->arg = keeper;
}

void keeper_close_values(struct keeper *keeper)
{
    unvouched_destroy(keeper->unvouched);
    values_destroy(keeper->values);
}
