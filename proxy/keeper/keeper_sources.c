/* What a source's keys mean to the rest of the keeper; see sources.h. */
#include "keeper/keeper_internal.h"

static size_t room(void *arg, size_t keyspace)
{
    const struct keeper *keeper = arg;
    return publishing_room(&keeper->publishing, keyspace);
}

static const char told_before[] =
    "its file has not all keys that were written or admitted before this process took over: until "
    "another one is there, or is read anew (POST /v1/rebuild)";

/* From the next view on. What was written since the list was made may be missing in it: hints are
 * what keeps such keys, for their time. */
static void on_taken(void *arg, size_t keyspace, struct key_set *set)
{
    struct keeper *keeper = arg;
    if (keeper->lacking[keyspace])
        set->lacks = told_before;
    keeper->lacking[keyspace] = false;
    publishing_give_set(&keeper->publishing, keyspace, set);
    keeper_publish(keeper, NULL);
}

static void on_refused(void *arg, size_t keyspace, const char *why)
{
    struct keeper *keeper = arg;
    publishing_refuse_set(&keeper->publishing, keyspace, why);
    keeper_publish(keeper, NULL);
}

void keeper_open_sources(struct keeper *keeper)
{
    sources_open(&keeper->sources, &(struct sources_options){.loop = &keeper->loop,
                                                             .room = room,
                                                             .taken = on_taken,
                                                             .refused = on_refused,
                                                             .arg = keeper});
    pushes_open(&keeper->pushes, &(struct pushes_options){.loop = &keeper->loop,
                                                          .publishing = &keeper->publishing,
                                                          .taken = on_taken,
                                                          .refused = on_refused,
                                                          .arg = keeper});
}

/* Nothing is forgotten: without a place for the key the keyspace rejects nothing any more. Its hint
 * is with the workers for longer than that takes. */
void keeper_know(struct keeper *keeper, struct key key)
{
    struct key_set *set = keeper->publishing.sets[key.keyspace];
    pushes_know(&keeper->pushes, key);
    if (!set || !keeper_config(keeper)->keyspaces[key.keyspace].source)
        return;
    uint64_t hash = filter_hash(&set->seed, key.text.at, key.text.length);
    if (filter_contains(set->filter, hash) || filter_insert(set->filter, hash) == 0 || set->lacks)
        return;
    set->lacks = key_set_full;
    keeper_review(keeper);
}

/* What was pushed is gone with this process, and no successor rejects by it. */
static bool is_told_more(const struct keyspace *keyspace, const struct key_set *set)
{
    return set && !keyspace->retired && keyspace_has_file(keyspace) &&
           (set->lacks || filter_stats(set->filter).keys > set->listed);
}

void keeper_tell_lacking(struct keeper *keeper)
{
    const struct config *config = keeper_config(keeper);
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (is_told_more(&config->keyspaces[i], keeper->publishing.sets[i]))
            succession_tell_lacking(&keeper->succession, config->keyspaces[i].name);
}

/* The predecessor's list is the one that is known here, or the one that will be taken next: it was
 * of the same file, or of what this process reads just now. */
void keeper_lacks(struct keeper *keeper, struct span keyspace)
{
    const struct config *config = keeper_config(keeper);
    const struct keyspace *same = config_find_keyspace(config, keyspace);
    if (!same || !keyspace_has_file(same))
        return;
    size_t number = (size_t)(same - config->keyspaces);
    struct key_set *set = keeper->publishing.sets[number];
    keeper->lacking[number] = !set || sources_is_behind(&keeper->sources, number);
    if (!set || set->lacks)
        return;
    set->lacks = told_before;
    keeper_review(keeper);
}
