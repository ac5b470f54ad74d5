#include "publish/publisher.h"

#include "base/clock.h"
#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAYS_MAX = 64 }; /* in which a key may be made of columns */

struct publisher {
    const struct view *view;      /* decided by now; NULL: none yet */
    struct published **published; /* of each keyspace; NULL where it publishes nothing */
    size_t count;
    char owner[PUBLISH_OWNER_SIZE];
    struct buffer joined; /* items that are not the key itself, one behind the other */
};

/* ---- items ---- */

/* What is in the filter of a row with this key. A key may be made of columns in more than one way,
 * and the log's word has come down to the key: then each of them is in. SIZE_MAX: there are too
 * many ways. */
static size_t items_of(struct publisher *publisher, const struct keyspace *keyspace,
                       struct span key, struct span items[WAYS_MAX])
{
    struct span ways[WAYS_MAX][KEY_COLUMNS_MAX];
    size_t ends[WAYS_MAX], begin = 0;
    if (keyspace->publish.items == PUBLISH_KEY) {
        items[0] = key;
        return 1;
    }
    size_t count = key_template_split(&keyspace->key, key, ways, WAYS_MAX);
    if (count > WAYS_MAX)
        return SIZE_MAX;
    buffer_clear(&publisher->joined);
    for (size_t i = 0; i < count; i++) {
        key_template_join(&keyspace->key, ways[i], &publisher->joined);
        ends[i] = buffer_length(&publisher->joined);
    }
    for (size_t i = 0; i < count; begin = ends[i++])
        items[i] = (struct span){buffer_span(&publisher->joined).at + begin, ends[i] - begin};
    return count;
}

/* ---- rows ---- */

/* What came after the start is not published. */
static struct published *find(const struct publisher *publisher, size_t keyspace)
{
    return publisher && keyspace < publisher->count ? publisher->published[keyspace] : NULL;
}

static struct bitmap *bitmap_of(const struct key_change *change)
{
    return change->generation ? change->generation->bitmaps[change->key.keyspace] : NULL;
}

/* Whichever log tells first: what is read until a candidate's bitmap takes over has to have all
 * that the candidate knows. */
static void add_row(struct publisher *publisher, struct published *published,
                    const struct key_change *change)
{
    struct span items[WAYS_MAX];
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    size_t count = items_of(publisher, published->keyspace, change->key.text, items);
    if (count == SIZE_MAX) {
        published_fail(published, "a key can be made of columns in too many ways");
        return;
    }
    if (bitmap_of(change))
        for (size_t i = 0; i < count; i++)
            bitmap_add(bitmap_of(change), items[i].at, items[i].length, places);
    published_add(published, items, count);
}

void publisher_hear(void *arg, const struct key_change *change)
{
    struct publisher *publisher = arg;
    struct published *published = find(publisher, (size_t)change->key.keyspace);
    if (!published)
        return;
    if (change->cause == CAUSE_INSERTED)
        add_row(publisher, published, change);
    else if (change->cause == CAUSE_DELETED)
        published->deleted += change->generation->number == published->from;
    else if (change->cause == CAUSE_MISSED)
        published_gap(published);
}

/* ---- generations ---- */

static void use_generation(struct published *published, struct generation *generation,
                           size_t keyspace)
{
    struct bitmap *bitmap = generation->bitmaps[keyspace];
    generation->bitmaps[keyspace] = NULL;
    published->keys = generation_rows(generation, keyspace);
    published_renew(published, bitmap, generation->number, (uint64_t)generation->built_at);
}

/* Shadow mode is for who does not trust the filter yet: nobody else shall. */
void publisher_use_view(struct publisher *publisher, const struct view *view)
{
    if (!publisher)
        return;
    publisher->view = view;
    for (size_t i = 0; i < publisher->count; i++) {
        struct published *published = publisher->published[i];
        if (!published)
            continue;
        bool guards = view->states[i] == KEYSPACE_GUARDING && view->config->keyspaces[i].enforce;
        if (!guards)
            published_permit(published, false);
        if (view->generation && view->generation->number != published->from)
            use_generation(published, view->generation, i);
        published_permit(published, guards);
    }
}

void publisher_known(struct publisher *publisher)
{
    const struct generation *generation =
        publisher && publisher->view ? publisher->view->generation : NULL;
    if (!generation)
        return;
    uint64_t until = atomic_load_explicit(&generation->lease, memory_order_relaxed);
    for (size_t i = 0; i < publisher->count; i++) {
        struct published *published = publisher->published[i];
        if (!published)
            continue;
        published->keys = generation_rows(generation, i);
        published_known(published, until);
    }
}

/* ---- the rest ---- */

void publisher_cache_is(struct publisher *publisher, bool up)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (publisher->published[i])
            published_cache_is(publisher->published[i], up);
}

void publisher_tick(struct publisher *publisher, uint64_t now)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (publisher->published[i])
            published_tick(publisher->published[i], now);
}

void publisher_end(struct publisher *publisher)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (publisher->published[i])
            published_permit(publisher->published[i], false);
}

const struct keyspace *publisher_worn(const struct publisher *publisher)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (publisher->published[i] && published_is_worn(publisher->published[i]))
            return publisher->published[i]->keyspace;
    return NULL;
}

const struct published *publisher_of(const struct publisher *publisher, size_t keyspace)
{
    return find(publisher, keyspace);
}

static bool publishes(const struct config *config)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (config->keyspaces[i].publish.key)
            return true;
    return false;
}

static void draw_owner(char owner[PUBLISH_OWNER_SIZE])
{
    struct filter_seed seed;
    uint64_t number;
    if (filter_seed_random(&seed) < 0) {
        fputs("nestguard: the system gives no random bytes\n", stderr);
        abort();
    }
    memcpy(&number, &seed, sizeof number);
    snprintf(owner, PUBLISH_OWNER_SIZE, "%016" PRIx64, number);
}

struct publisher *publisher_create(const struct config *config, struct redis *redis)
{
    if (!publishes(config))
        return NULL;
    struct publisher *publisher = xcalloc(1, sizeof *publisher);
    publisher->count = config->keyspace_count;
    publisher->published = xcalloc(publisher->count, sizeof(struct published *));
    draw_owner(publisher->owner);
    for (size_t i = 0; i < publisher->count; i++) {
        if (!config->keyspaces[i].publish.key)
            continue;
        publisher->published[i] = xcalloc(1, sizeof(struct published));
        published_init(publisher->published[i], &config->keyspaces[i], redis, publisher->owner);
    }
    return publisher;
}

void publisher_destroy(struct publisher *publisher)
{
    if (!publisher)
        return;
    for (size_t i = 0; i < publisher->count; i++) {
        if (publisher->published[i])
            published_finish(publisher->published[i]);
        free(publisher->published[i]);
    }
    buffer_finish(&publisher->joined);
    free(publisher->published);
    free(publisher);
}
