/* The map's order of insertion serves as the order of inspection: overrides_expire() looks at the
 * oldest, and puts back at the young end what still holds, so that every entry has its turn.
 */
#include "guard/overrides.h"

#include "base/memory.h"
#include "guard/view.h"

#include <assert.h>
#include <malloc.h>
#include <stdlib.h>

struct node {
    struct keymap_node map;
    struct override entry;
    char key[];
};

static struct node *node_of(struct keymap_node *at)
{
    return container_of(at, struct node, map);
}

void overrides_init(struct overrides *overrides)
{
    *overrides = (struct overrides){0};
    keymap_init(&overrides->map);
}

static size_t node_bytes(size_t key_length)
{
    return sizeof(struct node) + key_length;
}

static void drop(struct overrides *overrides, struct node *node)
{
    keymap_remove(&overrides->map, &node->map);
    overrides->places -= override_places(node->map.key.length);
    overrides->bytes -= node_bytes(node->map.key.length);
    free(node);
}

void overrides_finish(struct overrides *overrides)
{
    while (overrides->map.oldest)
        drop(overrides, node_of(overrides->map.oldest));
    keymap_finish(&overrides->map);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What has ended stays so: whatever comes into force, these never go back. */
void overrides_use_generation(struct overrides *overrides, const struct generation *generation)
{
    if (!generation)
        return;
    overrides->in_force = later(overrides->in_force, generation->number);
    overrides->settled = later(overrides->settled, generation->settled);
}

static bool has_ended(const struct overrides *overrides, const struct override *entry, uint64_t now)
{
    uint64_t known = entry->kind == OVERRIDE_HINT ? overrides->settled : overrides->in_force;
    return now >= entry->until && !(entry->sticky && entry->epoch >= known);
}

/* A number is compared in place of a walk over all entries when a generation comes: with as many
 * as there may be that would hold up everybody. */
struct override overrides_find(const struct overrides *overrides, struct key key, uint64_t now)
{
    struct keymap_node *found = key_find(&overrides->map, key);
    if (!found)
        return (struct override){.kind = OVERRIDE_NONE};
    struct override entry = node_of(found)->entry;
    if (has_ended(overrides, &entry, now))
        entry.kind = OVERRIDE_NONE;
    if (now >= entry.blocked_until)
        entry.blocked_until = 0;
    return entry;
}

/* The node is made anew, so that the entry counts as inspected now. */
static void replace(struct overrides *overrides, struct keymap_node *found, struct key key,
                    struct override entry)
{
    struct node *node = NULL;
    if (entry.kind != OVERRIDE_NONE || entry.blocked_until || entry.writes) {
        node = xmalloc(node_bytes(key.text.length));
        node->entry = entry;
    }
    if (found)
        drop(overrides, node_of(found));
    if (!node)
        return;
    key_insert(&overrides->map, &node->map, key_copy(key, node->key));
    overrides->places += override_places(key.text.length);
    overrides->bytes += node_bytes(key.text.length);
    peak_note(&overrides->peak, overrides->bytes);
}

void overrides_set(struct overrides *overrides, struct key key, struct override entry)
{
    struct keymap_node *found = key_find(&overrides->map, key);
    entry.writes = found ? node_of(found)->entry.writes : 0;
    replace(overrides, found, key, entry);
}

void overrides_begin_write(struct overrides *overrides, struct key key)
{
    struct keymap_node *found = key_find(&overrides->map, key);
    if (found)
        node_of(found)->entry.writes++;
    else
        replace(overrides, NULL, key, (struct override){.kind = OVERRIDE_NONE, .writes = 1});
}

void overrides_end_write(struct overrides *overrides, struct key key)
{
    struct keymap_node *found = key_find(&overrides->map, key);
    assert(found && node_of(found)->entry.writes);
    struct override *entry = &node_of(found)->entry;
    if (--entry->writes == 0 && entry->kind == OVERRIDE_NONE && !entry->blocked_until)
        drop(overrides, node_of(found));
}

/* What was known may end before the block does. */
static bool is_of_no_use(const struct overrides *overrides, const struct override *entry,
                         uint64_t now)
{
    return has_ended(overrides, entry, now) && now >= entry->blocked_until && !entry->writes;
}

void overrides_expire(struct overrides *overrides, uint64_t now, size_t most)
{
    if (most > overrides->map.count)
        most = overrides->map.count;
    while (most--) {
        struct node *node = node_of(overrides->map.oldest);
        if (is_of_no_use(overrides, &node->entry, now)) {
            drop(overrides, node);
        } else {
            keymap_remove(&overrides->map, &node->map);
            keymap_insert(&overrides->map, &node->map);
        }
    }
}

void overrides_settle(struct overrides *overrides)
{
    if (peak_is_over(&overrides->peak, overrides->bytes))
        malloc_trim(0);
}

void overrides_each(const struct overrides *overrides, uint64_t now,
                    void (*visit)(void *arg, struct key key, struct override entry), void *arg)
{
    for (struct keymap_node *at = overrides->map.oldest; at; at = at->newer) {
        /* A node does not say which keyspace its key is of: templates do not overlap, so the text
         * does. */
        struct key key = {at->key, at->hash, -1};
        struct override entry = overrides_find(overrides, key, now);
        if (entry.kind != OVERRIDE_NONE || entry.blocked_until)
            visit(arg, key, entry);
    }
}

size_t overrides_count(const struct overrides *overrides)
{
    return overrides->map.count;
}

size_t overrides_places(const struct overrides *overrides)
{
    return overrides->places;
}

struct override override_admit(struct override known, struct override hint)
{
    hint.blocked_until = known.blocked_until;
    if (known.kind != OVERRIDE_HINT)
        return hint;
    hint.sticky = hint.sticky || known.sticky;
    hint.since = known.since;
    hint.until = later(hint.until, known.until);
    hint.epoch = later(hint.epoch, known.epoch);
    return hint;
}

const char *override_kind_name(enum override_kind kind)
{
    static const char *const names[] = {
        [OVERRIDE_NONE] = "none", [OVERRIDE_HINT] = "hint", [OVERRIDE_TOMBSTONE] = "tombstone"};
    return names[kind];
}
