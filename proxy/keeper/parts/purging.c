/* Nothing is deleted here for a reason of its own: what is old is told as a change, to all whom
 * that concerns, and comes back by purging_hear(). So whatever is loaded just now is old before the
 * cache is told to forget it.
 */
#include "keeper/parts/purging.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"

#include <stdlib.h>

/* ---- what is told ---- */

static void tell(const struct purging *purging, const struct key_change *change)
{
    purging->options.changes.tell(purging->options.changes.arg, change);
}

static void tell_keyspace(const struct purging *purging, enum cause cause, int keyspace)
{
    struct key_change change = change_of_keyspace(cause, keyspace);
    tell(purging, &change);
}

/* Of each keyspace with rows: what is retired was purged when it was. */
static void tell_all(const struct purging *purging, enum cause cause)
{
    const struct config *config = purging->options.config;
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]))
            tell_keyspace(purging, cause, (int)i);
}

void purging_missed(struct purging *purging)
{
    tell_all(purging, CAUSE_MISSED);
}

void purging_missed_of(struct purging *purging, int keyspace)
{
    tell_keyspace(purging, CAUSE_MISSED, keyspace);
}

/* Nor is a server that only workers are connected to so far. */
void purging_doubt(struct purging *purging, const char *why)
{
    vouched_settle(purging->options.vouched);
    purgers_doubt(&purging->purgers, why);
    if (purging->other.is_there)
        purgers_doubt(&purging->other.purgers, why);
}

bool purging_doubts(const struct purging *purging)
{
    return purgers_are_doubted(&purging->purgers);
}

void purging_outdated(struct purging *purging, int keyspace)
{
    tell_keyspace(purging, CAUSE_ALTERED, keyspace);
}

void purging_outdated_all(struct purging *purging)
{
    tell_all(purging, CAUSE_ALTERED);
}

static bool has_other(const struct purging *purging)
{
    return purging->other.is_there;
}

static void hear(struct purgers *purgers, const struct key_change *change)
{
    if (cause_is_of_keyspace(change->cause))
        purgers_keyspace(purgers, change->key.keyspace);
    else
        purgers_key(purgers, change->key);
}

void purging_hear(void *arg, const struct key_change *change)
{
    struct purging *purging = arg;
    hear(&purging->purgers, change);
    if (has_other(purging))
        hear(&purging->other.purgers, change);
}

/* ---- what nobody vouches for ---- */

/* Without a log it is what values are made of that vouches for them: what is altered after the
 * first answer is noticed, when a generation is built; before it there is nothing to compare with.
 */
static bool is_vouched_for(const struct purging *purging)
{
    if (purging->options.config->sync != SYNC_REPLICATION)
        return values_are_known(purging->values);
    return !replication_is_blind(purging->options.replication);
}

void purging_filling(void *arg, struct key key)
{
    struct purging *purging = arg;
    if (!is_vouched_for(purging))
        unvouched_add(purging->unvouched, key);
}

static void on_unvouched_keyspace(void *arg, int keyspace)
{
    tell_keyspace(arg, CAUSE_FILLED, keyspace);
}

static void on_unvouched(void *arg, struct key key)
{
    struct key_change change = change_of_key(CAUSE_UNVOUCHED, key);
    tell(arg, &change);
}

/* Loads first: what was asked before now would be filled behind this, and nobody vouches for it,
 * either. */
void purging_give_unvouched(struct purging *purging)
{
    tell_all(purging, CAUSE_ASKED);
    unvouched_give(purging->unvouched, on_unvouched_keyspace, on_unvouched, purging);
}

/* ---- what values are made of ---- */

static void on_altered(void *arg, int keyspace)
{
    const struct purging *purging = arg;
    if (!keyspace_has_rows(&purging->options.config->keyspaces[keyspace])) /* that was seen to */
        return;
    log_info("keyspace %s: a column or type that its values are made of was altered; all keys of "
             "it are deleted from the cache",
             purging->options.config->keyspaces[keyspace].name);
    tell_keyspace(purging, CAUSE_ALTERED, keyspace);
}

/* Without a log the first answer is what vouches from here on; what was filled before it is
 * purged. */
void purging_learn_values(struct purging *purging, const char *answer)
{
    bool vouched = is_vouched_for(purging);
    values_learn(purging->values, answer, clock_ms());
    if (!vouched && is_vouched_for(purging))
        purging_give_unvouched(purging);
}

bool purging_knows_values(const struct purging *purging)
{
    return values_are_known(purging->values);
}

void purging_check_time(struct purging *purging, uint64_t now)
{
    values_check_time(purging->values, now);
    purgers_check_time(&purging->purgers);
    purgers_check_time(&purging->other.purgers);
}

/* ---- one key ---- */

/* Of purging_delete(), until the cache has answered. */
struct deletion {
    counter *count;
    redis_answer_cb done;
    void *arg;
};

static struct redis_bytes bytes_of(struct key key)
{
    return (struct redis_bytes){key.text.at, key.text.length};
}

static void on_deleted(void *arg, const struct redis_answer *answer)
{
    struct deletion deletion = *(struct deletion *)arg;
    free(arg);
    if (answer->outcome == REDIS_DONE)
        counter_add(deletion.count, 1);
    deletion.done(deletion.arg, answer);
}

void purging_delete(struct purging *purging, struct key key, redis_answer_cb done, void *arg)
{
    struct deletion *deletion = xmalloc(sizeof *deletion);
    *deletion = (struct deletion){&purging->options.counters[key.keyspace].purges, done, arg};
    redis_purge(purging->options.redis, bytes_of(key), on_deleted, deletion);
    purging_delete_other(purging, key);
}

void purging_ask(struct purging *purging, struct key key, redis_answer_cb done, void *arg)
{
    redis_exists(purging->options.redis, bytes_of(key), done, arg);
}

void purging_owe(struct purging *purging, struct key key)
{
    purgers_key(&purging->purgers, key);
}

/* ---- what is told of it ---- */

bool purging_owes(const struct purging *purging)
{
    return purgers_owed(&purging->purgers) > 0;
}

void purging_report(const struct purging *purging, struct report *report)
{
    const struct redis *redis = purging->options.redis;
    report->cache_nodes = redis_node_count(redis);
    report->cache = xcalloc(report->cache_nodes, sizeof *report->cache);
    for (size_t i = 0; i < report->cache_nodes; i++)
        redis_describe(redis, i, &report->cache[i]);
    report->cache_is_cluster = redis_is_cluster(redis);
    report->slots_uncovered = redis_left_out(redis);
    report->purges_owed = purgers_owed(&purging->purgers);
}

/* ---- life ---- */

static void open_purgers(const struct purging *purging, struct purgers *purgers,
                         struct redis *redis)
{
    const struct purging_options *options = &purging->options;
    purgers_open(purgers, &(struct purger_options){.redis = redis,
                                                   .loop = options->loop,
                                                   .config = options->config,
                                                   .counters = options->counters,
                                                   .vouched = options->vouched,
                                                   .max_owed = options->config->max_hints});
}

void purging_open(struct purging *purging, const struct purging_options *options)
{
    const struct config *config = options->config;
    *purging = (struct purging){.options = *options};
    open_purgers(purging, &purging->purgers, options->redis);
    purging->unvouched = unvouched_create(KEYSPACES_MAX, config->max_hints);
    purging->values = values_create(&(struct values_options){
        .keyspaces = KEYSPACES_MAX, .altered = on_altered, .arg = purging});
}

void purging_use_config(struct purging *purging, const struct config *config)
{
    if (!purging->unvouched)
        return;
    purging->options.config = config;
    purgers_use_config(&purging->purgers, config);
    if (has_other(purging))
        purgers_use_config(&purging->other.purgers, config);
}

/* ---- the other cache ---- */

void purging_open_other(struct purging *purging, struct redis *redis)
{
    purging->other.is_there = true;
    purging->other.redis = redis;
    open_purgers(purging, &purging->other.purgers, redis);
}

void purging_sweep_other(struct purging *purging)
{
    const struct config *config = purging->options.config;
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired)
            purgers_keyspace(&purging->other.purgers, (int)i);
}

void purging_doubt_other(struct purging *purging)
{
    purgers_doubt_too(&purging->other.purgers);
}

void purging_delete_other(struct purging *purging, struct key key)
{
    if (has_other(purging))
        purgers_key(&purging->other.purgers, key);
}

bool purging_other_is_swept(const struct purging *purging)
{
    return purgers_are_swept(&purging->other.purgers);
}

bool purging_owes_other(const struct purging *purging)
{
    return purgers_owed(&purging->other.purgers) > 0;
}

void purging_swap(struct purging *purging)
{
    struct purging_other left = {true, purging->options.redis, purging->purgers};
    purging->options.redis = purging->other.redis;
    purging->purgers = purging->other.purgers;
    purging->other = left;
}

void purging_give_up_other(struct purging *purging)
{
    purgers_give_up(&purging->other.purgers);
}

void purging_close_other(struct purging *purging)
{
    purgers_close(&purging->other.purgers);
    purging->other = (struct purging_other){0};
}

struct purgers *purging_purgers_of(struct purging *purging, const struct redis *redis)
{
    if (redis == purging->options.redis)
        return &purging->purgers;
    return has_other(purging) && redis == purging->other.redis ? &purging->other.purgers : NULL;
}

/* ---- the end ---- */

void purging_give_up(struct purging *purging)
{
    purgers_give_up(&purging->purgers);
}

void purging_close(struct purging *purging)
{
    purging_close_other(purging);
    purgers_close(&purging->purgers);
    unvouched_destroy(purging->unvouched);
    values_destroy(purging->values);
    *purging = (struct purging){0};
}
