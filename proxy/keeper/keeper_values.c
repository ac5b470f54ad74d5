/* How the keeper keeps old values out of the cache where no row's change tells of them:
 *
 *   filled before a log was followed ─▶ unvouched ─┐  a log is followed, or the guard ends
 *   the log was lost for a while ─────▶ missed ────┼──────────────▶ purged
 *   DDL ─▶ another answer ─▶ values ───────────────┴─ at once ────▶
 *
 * Without a log, in the place of its first following is the first generation: with it comes what
 * its values are made of, as it was when the building began.
 *
 * Each is a cause of changes.h, which says that whatever is being loaded is old before it purges,
 * so that none of it is filled behind the purge. What was filled before was sent before, over the
 * same connection to the cache. And what is asked later is told by the log that is followed by
 * then, but for what it told, or was over when it began, and is not visible yet:
 * commit_visibility.h sees to that.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"

static void tell_keyspace(struct keeper *keeper, enum cause cause, int keyspace)
{
    struct key_change change = change_of_keyspace(cause, keyspace);
    changes_tell(&keeper->changes, &change);
}

static void tell_all(struct keeper *keeper, enum cause cause)
{
    for (size_t i = 0; i < keeper_config(keeper)->keyspace_count; i++)
        tell_keyspace(keeper, cause, (int)i);
}

void keeper_purge_missed(struct keeper *keeper)
{
    tell_all(keeper, CAUSE_MISSED);
}

/* Without a log it is what values are made of that vouches for them: what is altered after the
 * first answer is noticed, when a generation is built; before it there is nothing to compare with.
 */
static bool is_vouched_for(const struct keeper *keeper)
{
    if (keeper_config(keeper)->sync != SYNC_REPLICATION)
        return values_are_known(keeper->values);
    return !replication_is_blind(&keeper->replication);
}

static void on_filling(void *arg, struct key key)
{
    struct keeper *keeper = arg;
    if (!is_vouched_for(keeper))
        unvouched_add(keeper->unvouched, key);
}

/* Without a log nothing would tell that the row has been committed since; with one, what tells of
 * it ends the hint. */
static bool is_expected(void *arg, struct key key)
{
    const struct keeper *keeper = arg;
    return entries_find(&keeper->entries, key).kind == OVERRIDE_HINT;
}

static void on_unvouched_keyspace(void *arg, int keyspace)
{
    tell_keyspace(arg, CAUSE_FILLED, keyspace);
}

static void on_unvouched(void *arg, struct key key)
{
    struct keeper *keeper = arg;
    struct key_change change = change_of_key(CAUSE_UNVOUCHED, key);
    changes_tell(&keeper->changes, &change);
}

void keeper_purge_unvouched(struct keeper *keeper)
{
    tell_all(keeper, CAUSE_ASKED);
    unvouched_give(keeper->unvouched, on_unvouched_keyspace, on_unvouched, keeper);
}

static void on_altered(void *arg, int keyspace)
{
    struct keeper *keeper = arg;
    log_info("keyspace %s: a column or type that its values are made of was altered; all keys of "
             "it are deleted from the cache",
             keeper_config(keeper)->keyspaces[keyspace].name);
    tell_keyspace(keeper, CAUSE_ALTERED, keyspace);
}

void keeper_learn_values(struct keeper *keeper, const char *answer)
{
    bool vouched = is_vouched_for(keeper);
    values_learn(keeper->values, answer, clock_ms());
    if (!vouched && is_vouched_for(keeper))
        keeper_purge_unvouched(keeper);
}

void keeper_open_values(struct keeper *keeper)
{
    const struct config *config = publishing_first_config(&keeper->publishing);
    keeper->unvouched = unvouched_create(config->keyspace_count, config->max_hints);
    keeper->values = values_create(&(struct values_options){
        .keyspaces = config->keyspace_count, .altered = on_altered, .arg = keeper});
}

static void on_snapshot_wanted(void *arg)
{
    replication_probe(&((struct keeper *)arg)->replication);
}

int keeper_open_loading(struct keeper *keeper)
{
    return loading_open(
        &keeper->loading,
        &(struct loading_options){.loop = &keeper->loop,
                                  .config = publishing_first_config(&keeper->publishing),
                                  .redis = keeper->redis,
                                  .watch = keeper->watch,
                                  .counters = keeper->counters,
                                  .filling = on_filling,
                                  .is_expected = is_expected,
                                  .snapshot_wanted = on_snapshot_wanted,
                                  .arg = keeper},
        keeper->publishing.view);
}

void keeper_close_values(struct keeper *keeper)
{
    unvouched_destroy(keeper->unvouched);
    values_destroy(keeper->values);
}
