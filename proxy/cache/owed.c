/* Between taking a key and giving it back it may have been added anew: then there is one, not two.
 *
 * To go past the limit for a moment is allowed, so that whoever takes keys back in a row need not
 * look at it each time; owed_keep_limit() comes behind. While the cache is up it forgets the newest
 * key only, which the sweep finds: those before it are about to be sent.
 */
#include "cache/owed.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/log_pace.h"
#include "base/memory.h"

#include <stdlib.h>

static void take(struct owed *owed, struct owed_key *key)
{
    keymap_remove(&owed->lanes[key->keyspace].keys, &key->node);
    owed->count--;
}

static void forget(struct owed *owed, struct keymap_node *node)
{
    struct owed_key *key = container_of(node, struct owed_key, node);
    take(owed, key);
    free(key);
}

static void empty(struct owed *owed, struct owed_lane *lane)
{
    while (lane->keys.oldest)
        forget(owed, lane->keys.oldest);
}

static void owe_whole(struct owed *owed, size_t keyspace, bool up)
{
    struct owed_lane *lane = &owed->lanes[keyspace];
    if (!lane->whole)
        log_warning("keyspace %s: more than %zu keys wait to be deleted from the cache, so all "
                    "keys of it will be",
                    owed->config->keyspaces[keyspace].name, owed->max);
    lane->whole = true;
    if (up)
        forget(owed, lane->keys.newest);
    else
        empty(owed, lane);
}

/* The one whose sweep spares most. */
static size_t fullest(const struct owed *owed)
{
    size_t fullest = 0;
    for (size_t i = 1; i < owed->config->keyspace_count; i++)
        if (owed->lanes[i].keys.count > owed->lanes[fullest].keys.count)
            fullest = i;
    return fullest;
}

void owed_keep_limit(struct owed *owed, bool up)
{
    while (owed->count > owed->max)
        owe_whole(owed, fullest(owed), up);
}

/* While the cache is down, a keyspace that is owed whole owes every key of it already. */
static bool is_owed(const struct owed *owed, struct key key, bool up)
{
    const struct owed_lane *lane = &owed->lanes[key.keyspace];
    return (lane->whole && !up) || key_find(&lane->keys, key);
}

bool owed_add(struct owed *owed, struct key key, bool up)
{
    if (is_owed(owed, key, up))
        return false;
    struct owed_key *copy = xmalloc(sizeof *copy + key.text.length);
    copy->keyspace = key.keyspace;
    key_insert(&owed->lanes[key.keyspace].keys, &copy->node, key_copy(key, copy->bytes));
    owed->count++;
    return true;
}

struct owed_key *owed_take(struct owed *owed, size_t keyspace)
{
    struct keymap_node *oldest = owed->lanes[keyspace].keys.oldest;
    if (!oldest)
        return NULL;
    struct owed_key *key = container_of(oldest, struct owed_key, node);
    take(owed, key);
    return key;
}

void owed_give_back(struct owed *owed, struct owed_key *key, bool up)
{
    if (is_owed(owed, (struct key){key->node.key, key->node.hash, key->keyspace}, up)) {
        free(key);
        return;
    }
    keymap_insert(&owed->lanes[key->keyspace].keys, &key->node);
    owed->count++;
}

/* A cluster may have many nodes. */
static void say_all(const char *why)
{
    static struct log_pace pace;
    uint64_t left_out;
    char said[LOG_PACE_SAID];
    if (log_pace_may(&pace, clock_ms(), &left_out))
        log_warning("cache: %s: it may have forgotten what was deleted from it, so all keys of the "
                    "keyspaces will be%s",
                    why, log_pace_said(left_out, said));
}

void owed_all(struct owed *owed, const char *why)
{
    bool news = false;
    for (size_t i = 0; i < owed->config->keyspace_count; i++) {
        news |= !owed->lanes[i].whole;
        owed->lanes[i].whole = true;
    }
    if (news)
        say_all(why);
}

bool owed_any_whole(const struct owed *owed)
{
    for (size_t i = 0; i < owed->config->keyspace_count; i++)
        if (owed->lanes[i].whole)
            return true;
    return false;
}

static void open_lanes(struct owed *owed, size_t from)
{
    for (size_t i = from; i < owed->config->keyspace_count; i++)
        keymap_init(&owed->lanes[i].keys);
}

void owed_init(struct owed *owed, const struct config *config, size_t max)
{
    *owed = (struct owed){.config = config, .max = max};
    owed->lanes = xcalloc(KEYSPACES_MAX, sizeof *owed->lanes);
    open_lanes(owed, 0);
}

/* Lanes never move: there are KEYSPACES_MAX from the beginning. */
void owed_use_config(struct owed *owed, const struct config *config)
{
    size_t from = owed->config->keyspace_count;
    owed->config = config;
    open_lanes(owed, from);
}

void owed_finish(struct owed *owed)
{
    for (size_t i = 0; i < owed->config->keyspace_count; i++) {
        empty(owed, &owed->lanes[i]);
        keymap_finish(&owed->lanes[i].keys);
    }
    free(owed->lanes);
}

void owed_tell_lost(const struct owed *owed, const struct owed_lane *swept, size_t sent)
{
    static const char remedy[] = "with purge_at_start: true the next start deletes them";
    for (size_t i = 0; i < owed->config->keyspace_count; i++)
        if (owed->lanes[i].whole || swept == &owed->lanes[i])
            log_warning("keyspace %s: not all of its keys were deleted from the cache, which may "
                        "hold stale values of it; %s",
                        owed->config->keyspaces[i].name, remedy);
    if (owed->count + sent)
        log_warning("%zu keys were not deleted from the cache, which may hold stale values of "
                    "them; %s",
                    owed->count + sent, remedy);
}
