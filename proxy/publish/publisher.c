/* A slot for each keyspace's number holds what is published of it now, with the configuration that
 * it is by: the view may have another already, whose bitmap only comes with the next generation.
 * What is published no more leaves its slot for `ended`, and stays there until its removal was
 * answered, since commands under way hold pointers to it:
 *
 *   use_view() ─▶ begin() ─▶ use_generation() ─┬─ may replace what is there ─▶ published_renew()
 *                                              ├─ another name, items or grow ─▶ end(), begin()
 *                                              └─ built for what was wanted before ─▶ pass_over()
 */
#include "publish/publisher.h"

#include "base/log/log.h"
#include "base/memory.h"
#include "config/config_reload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { WAYS_MAX = 64 }; /* in which a key may be made of columns */

struct slot {
    struct published *published;  /* NULL: nothing */
    struct shared_config *shared; /* that its keyspace is of; one reference */
    uint64_t from;                /* number of the last generation that was looked at for it */
};

struct publisher {
    struct redis *redis;
    const struct view *view; /* decided by now; NULL: none yet */
    struct slot *slots;      /* KEYSPACES_MAX */
    size_t count;            /* of those that were ever in use */
    struct slot *ended;      /* not over yet; in the order in which they ended */
    size_t ended_count;
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

static struct published *find(const struct publisher *publisher, size_t keyspace)
{
    return publisher && keyspace < publisher->count ? publisher->slots[keyspace].published : NULL;
}

/* The keyspace as it was when the generation was begun; NULL: it was not there. */
static const struct keyspace *built_for(const struct generation *generation, size_t keyspace)
{
    const struct config *config = generation->built_for ? generation->built_for->config : NULL;
    return config && keyspace < config->keyspace_count ? &config->keyspaces[keyspace] : NULL;
}

/* To the bitmap of the generation that tells of it, if nobody has taken that: by what it was built
 * for. Also while nothing is published: a file may want it again before the next generation. */
static void add_to_generation(struct publisher *publisher, const struct key_change *change)
{
    struct span items[WAYS_MAX];
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    struct bitmap **bitmap =
        change->generation ? &change->generation->bitmaps[change->key.keyspace] : NULL;
    if (!bitmap || !*bitmap)
        return;
    size_t count = items_of(publisher, built_for(change->generation, (size_t)change->key.keyspace),
                            change->key.text, items);
    if (count == SIZE_MAX) {
        bitmap_destroy(*bitmap);
        *bitmap = NULL;
        return;
    }
    for (size_t i = 0; i < count; i++)
        bitmap_add(*bitmap, items[i].at, items[i].length, places);
}

/* Whichever log tells first: what is read until a candidate's bitmap takes over has to have all
 * that the candidate knows. */
static void add_row(struct publisher *publisher, struct published *published,
                    const struct key_change *change)
{
    struct span items[WAYS_MAX];
    size_t count = items_of(publisher, published->keyspace, change->key.text, items);
    if (count == SIZE_MAX)
        published_spoil(published, "a key can be made of columns in too many ways");
    else
        published_add(published, items, count);
}

void publisher_hear(void *arg, const struct key_change *change)
{
    struct publisher *publisher = arg;
    struct published *published = find(publisher, (size_t)change->key.keyspace);
    if (change->cause == CAUSE_INSERTED)
        add_to_generation(publisher, change);
    if (!published)
        return;
    if (change->cause == CAUSE_INSERTED)
        add_row(publisher, published, change);
    else if (change->cause == CAUSE_DELETED)
        published->deleted += change->generation->number == published->from;
    else if (change->cause == CAUSE_MISSED)
        published_gap(published);
}

/* ---- what is wanted ---- */

static void use_config(struct slot *slot, struct shared_config *shared, size_t keyspace)
{
    shared->references++;
    shared_config_release(slot->shared);
    slot->shared = shared;
    published_use(slot->published, &shared->config->keyspaces[keyspace]);
}

static void begin(struct publisher *publisher, struct shared_config *shared, size_t keyspace)
{
    struct slot *slot = &publisher->slots[keyspace];
    slot->published = xcalloc(1, sizeof *slot->published);
    published_init(slot->published, &shared->config->keyspaces[keyspace], publisher->redis,
                   publisher->owner);
    use_config(slot, shared, keyspace);
}

/* The commands that are under way tell it of their answers. */
static void end(struct publisher *publisher, struct slot *slot)
{
    log_info("keyspace %s: published filter %s: ended", slot->published->keyspace->name,
             slot->published->keyspace->publish.key);
    published_end(slot->published);
    publisher->ended =
        xrealloc(publisher->ended, (publisher->ended_count + 1) * sizeof *publisher->ended);
    publisher->ended[publisher->ended_count++] = *slot;
    slot->published = NULL;
    slot->shared = NULL;
}

static void slot_finish(struct slot *slot)
{
    if (slot->published)
        published_finish(slot->published);
    free(slot->published);
    shared_config_release(slot->shared);
}

static void forget_ended(struct publisher *publisher)
{
    size_t kept = 0;
    for (size_t i = 0; i < publisher->ended_count; i++)
        if (published_is_over(publisher->ended[i].published))
            slot_finish(&publisher->ended[i]);
        else
            publisher->ended[kept++] = publisher->ended[i];
    publisher->ended_count = kept;
}

/* ---- generations ---- */

/* Under the same names, and of the same items: one bitmap may take the other's place. */
static bool may_replace(const struct publish *before, const struct publish *now)
{
    return strcmp(before->key, now->key) == 0 && before->items == now->items &&
           before->grow == now->grow;
}

/* It was begun before what is wanted was: the next one has it. Of what is in the cache nobody knows
 * whether it has all that this one has. */
static void pass_over(struct publisher *publisher, struct slot *slot, const struct view *view,
                      size_t keyspace)
{
    if (slot->published->state == PUBLISHED_EMPTY)
        return;
    end(publisher, slot);
    begin(publisher, view->shared, keyspace);
}

static void use_generation(struct publisher *publisher, const struct view *view, size_t keyspace)
{
    struct slot *slot = &publisher->slots[keyspace];
    struct generation *generation = view->generation;
    const struct keyspace *built = built_for(generation, keyspace);
    const struct publish *wanted = &view->config->keyspaces[keyspace].publish;
    struct bitmap *bitmap = generation->bitmaps[keyspace];
    generation->bitmaps[keyspace] = NULL;
    slot->from = generation->number;
    if (!built || !config_same_publish(&built->publish, wanted)) {
        bitmap_destroy(bitmap);
        pass_over(publisher, slot, view, keyspace);
        return;
    }
    if (may_replace(&slot->published->keyspace->publish, wanted)) {
        use_config(slot, view->shared, keyspace);
    } else {
        end(publisher, slot);
        begin(publisher, view->shared, keyspace);
    }
    slot->published->keys = generation_rows(generation, keyspace);
    published_renew(slot->published, bitmap, generation->number, (uint64_t)generation->built_at);
}

/* Shadow mode is for who does not trust the filter yet: nobody else shall. */
static void use_view(struct publisher *publisher, const struct view *view, size_t i)
{
    struct slot *slot = &publisher->slots[i];
    const struct keyspace *keyspace = &view->config->keyspaces[i];
    bool wanted = !keyspace->retired && keyspace->publish.key;
    if (slot->published && !wanted)
        end(publisher, slot);
    if (!wanted)
        return;
    if (!slot->published)
        begin(publisher, view->shared, i);
    bool guards = view->states[i] == KEYSPACE_GUARDING && keyspace->enforce;
    if (!guards)
        published_permit(slot->published, false);
    if (view->generation && view->generation->number != slot->from)
        use_generation(publisher, view, i);
    published_permit(slot->published, guards);
}

void publisher_use_view(struct publisher *publisher, const struct view *view)
{
    if (!publisher)
        return;
    publisher->view = view;
    publisher->count = view->config->keyspace_count;
    for (size_t i = 0; i < publisher->count; i++)
        use_view(publisher, view, i);
}

void publisher_known(struct publisher *publisher)
{
    const struct generation *generation =
        publisher && publisher->view ? publisher->view->generation : NULL;
    if (!generation)
        return;
    uint64_t until = atomic_load_explicit(&generation->lease, memory_order_relaxed);
    for (size_t i = 0; i < publisher->count; i++) {
        struct published *published = find(publisher, i);
        if (!published)
            continue;
        published->keys = generation_rows(generation, i);
        published_known(published, until);
    }
}

/* ---- the rest ---- */

/* What is in it is asked for anew. The redis before is gone by now, and not to be touched. */
void publisher_use_cache(struct publisher *publisher, struct redis *redis)
{
    if (!publisher)
        return;
    publisher->redis = redis;
    for (size_t i = 0; i < publisher->count; i++)
        if (find(publisher, i))
            published_use_cache(find(publisher, i), redis);
    for (size_t i = 0; i < publisher->ended_count; i++)
        published_use_cache(publisher->ended[i].published, redis);
    publisher_cache_is(publisher, redis_is_up(redis));
}

void publisher_cache_is(struct publisher *publisher, bool up)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (find(publisher, i))
            published_cache_is(find(publisher, i), up);
}

void publisher_node_is(struct publisher *publisher, int node, bool up)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (find(publisher, i))
            published_node_is(find(publisher, i), node, up);
}

/* What has ended goes first: another may have its name by now. */
void publisher_tick(struct publisher *publisher, uint64_t now)
{
    if (!publisher)
        return;
    for (size_t i = 0; i < publisher->ended_count; i++)
        published_tick(publisher->ended[i].published, now);
    forget_ended(publisher);
    for (size_t i = 0; i < publisher->count; i++)
        if (find(publisher, i))
            published_tick(find(publisher, i), now);
}

void publisher_end(struct publisher *publisher)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (find(publisher, i))
            published_permit(find(publisher, i), false);
}

const struct keyspace *publisher_worn(const struct publisher *publisher)
{
    for (size_t i = 0; publisher && i < publisher->count; i++)
        if (find(publisher, i) && published_is_worn(find(publisher, i)))
            return find(publisher, i)->keyspace;
    return NULL;
}

const struct published *publisher_of(const struct publisher *publisher, size_t keyspace)
{
    return find(publisher, keyspace);
}

struct published_report publisher_report(const struct publisher *publisher, size_t keyspace)
{
    const struct published *published = find(publisher, keyspace);
    return published ? published_report(published) : (struct published_report){0};
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

struct publisher *publisher_create(struct redis *redis)
{
    struct publisher *publisher = xcalloc(1, sizeof *publisher);
    publisher->redis = redis;
    publisher->slots = xcalloc(KEYSPACES_MAX, sizeof *publisher->slots);
    draw_owner(publisher->owner);
    return publisher;
}

void publisher_destroy(struct publisher *publisher)
{
    if (!publisher)
        return;
    for (size_t i = 0; i < publisher->count; i++)
        slot_finish(&publisher->slots[i]);
    for (size_t i = 0; i < publisher->ended_count; i++)
        slot_finish(&publisher->ended[i]);
    buffer_finish(&publisher->joined);
    free(publisher->slots);
    free(publisher->ended);
    free(publisher);
}
