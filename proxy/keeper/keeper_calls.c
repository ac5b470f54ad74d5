/* What the control port's calls may do with the keeper; see keeper.h. */
#include "keeper/keeper_internal.h"

#include "base/memory.h"
#include "redis/redis.h"

#include <stdlib.h>

const struct config *keeper_config(const struct keeper *keeper)
{
    return publishing_config(&keeper->publishing);
}

uint64_t keeper_rebuild(struct keeper *keeper)
{
    return keeper->draining ? 0 : renewal_begin(&keeper->renewal);
}

void keeper_open_touch(struct keeper *keeper, struct key_touch *touch)
{
    touch->next = keeper->touches;
    keeper->touches = touch;
    watch_add(keeper->watch, touch->key);
}

void keeper_close_touch(struct keeper *keeper, struct key_touch *touch)
{
    struct key_touch **at = &keeper->touches;
    while (*at != touch)
        at = &(*at)->next;
    *at = touch->next;
    watch_drop(keeper->watch, touch->key);
}

bool keeper_renew_touch(const struct keeper *keeper, struct key_touch *touch)
{
    return touch->touched = keeper_has_unseen(keeper, touch->key);
}

bool keeper_has_unseen(const struct keeper *keeper, struct key key)
{
    return visibility_has(keeper->loading.visibility, key);
}

void keeper_hurry_unseen(struct keeper *keeper)
{
    visibility_hurry(keeper->loading.visibility);
}

const struct rows *keeper_rows(const struct keeper *keeper)
{
    return &keeper->loading.rows;
}

void keeper_ask_cache(struct keeper *keeper, struct key key, redis_answer_cb done, void *arg)
{
    purging_ask(&keeper->purging, key, done, arg);
}

/* ---- entries ---- */

struct override keeper_entry(const struct keeper *keeper, struct key key)
{
    return entries_find(&keeper->entries, key);
}

int keeper_has_room(const struct keeper *keeper, struct key key)
{
    return entries_have_room(&keeper->entries, key);
}

int keeper_override(struct keeper *keeper, struct key key, struct override entry,
                    void (*done)(void *arg), void *arg)
{
    return entries_set(&keeper->entries, key, entry, done, arg);
}

struct override keeper_hint(const struct keeper *keeper, uint64_t for_ms)
{
    return entries_hint(&keeper->entries, for_ms);
}

struct override keeper_tombstone(const struct keeper *keeper)
{
    return entries_tombstone(&keeper->entries);
}

void keeper_purge(struct keeper *keeper, struct key key, redis_answer_cb done, void *arg)
{
    purging_delete(&keeper->purging, key, done, arg);
}
