/* What a source's keys mean to the rest of the keeper; see sources.h. */
#include "keeper/keeper_internal.h"

static size_t room(void *arg, size_t keyspace)
{
    const struct keeper *keeper = arg;
    return publishing_room(&keeper->publishing, keyspace);
}

/* From the next view on. What was written since the list was made may be missing in it: hints are
 * what keeps such keys, for their time. */
static void on_taken(void *arg, size_t keyspace, struct key_set *set)
{
    struct keeper *keeper = arg;
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
    if (filter_contains(set->filter, hash) || filter_insert(set->filter, hash) == 0 || set->is_full)
        return;
    set->is_full = true;
    keeper_review(keeper);
}
