/* References are plain numbers. A view's are its holders: one for each worker, and the keeper's
 * own. A view in turn refers to its generation and its configuration, which many views share.
 */
#include "guard/view.h"

#include "base/clock.h"
#include "base/memory.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

const char *keyspace_state_name(enum keyspace_state state)
{
    static const char *const names[] = {[KEYSPACE_LOADING] = "loading",
                                        [KEYSPACE_GUARDING] = "guarding",
                                        [KEYSPACE_PASSING] = "passing"};
    return names[state];
}

struct generation *generation_create(uint64_t number, size_t keyspaces)
{
    struct generation *generation = xcalloc(1, sizeof *generation);
    generation->number = generation->settled = number;
    generation->count = keyspaces;
    /* For every number that there may ever be: of a keyspace that came later there is none. */
    generation->filters = xcalloc(KEYSPACES_MAX, sizeof *generation->filters);
    generation->faults = xcalloc(KEYSPACES_MAX, sizeof *generation->faults);
    generation->bitmaps = xcalloc(KEYSPACES_MAX, sizeof *generation->bitmaps);
    generation->shared = xcalloc(keyspaces, sizeof *generation->shared);
    generation->references = 1;
    atomic_init(&generation->lease, UINT64_MAX);
    if (filter_seed_random(&generation->seed) < 0) {
        fputs("nestguard: the system gives no random bytes\n", stderr);
        abort();
    }
    return generation;
}

void generation_release(struct generation *generation)
{
    if (!generation || --generation->references)
        return;
    for (size_t i = 0; i < generation->count; i++)
        filter_destroy(generation->filters[i]);
    for (size_t i = 0; i < generation->count; i++)
        bitmap_destroy(generation->bitmaps[i]);
    for (size_t i = 0; i < KEYSPACES_MAX; i++)
        free(generation->faults[i]);
    shared_config_release(generation->built_for);
    free(generation->filters);
    free(generation->faults);
    free(generation->bitmaps);
    free(generation->shared);
    free(generation);
}

bool generation_covers(const struct generation *generation, size_t keyspace)
{
    return generation->filters[keyspace] && !generation->faults[keyspace];
}

bool generation_covers_another(const struct generation *generation, size_t keyspace)
{
    for (size_t i = 0; i < generation->count; i++)
        if (i != keyspace && generation_covers(generation, i))
            return true;
    return false;
}

bool generation_covers_any(const struct generation *generation)
{
    return generation_covers_another(generation, SIZE_MAX);
}

void generation_give_up(struct generation *generation, size_t keyspace, const char *why)
{
    if (!generation->faults[keyspace])
        generation->faults[keyspace] = xstrdup(why);
}

bool generation_retire(struct generation *generation, const struct config *config)
{
    bool retired = false;
    for (size_t i = 0; i < generation->count; i++) {
        if (!config->keyspaces[i].retired)
            continue;
        generation_give_up(generation, i, "it is not configured any more");
        retired = true;
    }
    return !retired || generation_covers_any(generation);
}

size_t generation_bytes(const struct generation *generation)
{
    size_t bytes = 0;
    for (size_t i = 0; i < generation->count; i++)
        if (generation->filters[i])
            bytes += filter_stats(generation->filters[i]).bytes;
    return bytes;
}

void generation_built_for(struct generation *generation, struct shared_config *shared)
{
    shared_config_release(generation->built_for);
    generation->built_for = shared;
    shared->references++;
}

uint64_t generation_rows(const struct generation *generation, size_t keyspace)
{
    if (!generation->filters[keyspace])
        return 0;
    return filter_stats(generation->filters[keyspace]).keys + generation->shared[keyspace];
}

struct shared_config *shared_config_create(struct config *config)
{
    struct shared_config *shared = xmalloc(sizeof *shared);
    *shared = (struct shared_config){config, 1};
    return shared;
}

void shared_config_release(struct shared_config *shared)
{
    if (!shared || --shared->references)
        return;
    config_destroy(shared->config);
    free(shared);
}

/* A lease until L says: the filters have every row whose commit had returned max_lag before L. It
 * is loaded before any filter is asked, so the filters know at least as much as it says when they
 * are. The clock then shows a time t before L that is not earlier than any of the lookups, which
 * have all been received: a row whose commit returned max_lag before its lookup was sent is in, and
 * is not rejected. That t may be well past when the last of the replies leaves, because there are
 * many or because the thread was held up, is no matter: they are right as of t, and no client can
 * tell this from replies that were slow on their way. For the same reason a lease that is ended
 * (set to 0) binds all lookups that are sent from then on, and only these. */
uint64_t permission_look_at_clock(struct permission *permission)
{
    return permission->now = clock_ms();
}

/* Looked at later than a lease is: that is stricter of a standing that was ended meanwhile, and one
 * that was extended was so by who had heard of this process, which had heard of all that it was to
 * know. */
bool permission_holds_of_set(struct permission *permission, int keyspace)
{
    const struct view *view = permission->view;
    return view->sets[keyspace] &&
           permission_time(permission) < atomic_load_explicit(view->standing, memory_order_acquire);
}

bool view_may_reject(const struct view *view, int keyspace)
{
    struct permission permission = permission_begin(view);
    return permission_holds(&permission, keyspace);
}

const char key_set_full[] = "its filter has no place for what was written since its source was "
                            "read: until that is read again";

struct key_set *key_set_create(struct filter *filter, struct filter_seed seed)
{
    struct key_set *set = xmalloc(sizeof *set);
    *set = (struct key_set){
        .filter = filter, .seed = seed, .listed = filter_stats(filter).keys, .references = 1};
    return set;
}

void key_set_release(struct key_set *set)
{
    if (!set || --set->references)
        return;
    filter_destroy(set->filter);
    free(set);
}

/* Of a generation that others hold on to, which filters there are never changes. */
static struct asked_filter asked_of(const struct generation *generation, size_t keyspace)
{
    if (!generation)
        return (struct asked_filter){NULL, NULL};
    return (struct asked_filter){generation->filters[keyspace], &generation->seed};
}

void view_give_set(struct view *view, size_t keyspace, struct key_set *set)
{
    set->references++;
    key_set_release(view->sets[keyspace]);
    view->sets[keyspace] = set;
    view->asked[keyspace] = (struct asked_filter){set->filter, &set->seed};
}

static const _Atomic uint64_t over = 0, endless = UINT64_MAX;

struct view *view_create(struct shared_config *shared, struct generation *generation,
                         const enum keyspace_state *states, unsigned holders)
{
    size_t count = shared->config->keyspace_count;
    struct view *view = xmalloc(sizeof *view + count * sizeof *states);
    view->shared = shared;
    view->config = shared->config;
    view->generation = generation;
    view->holders = holders;
    view->newest = generation ? generation->number : 0;
    view->building = false;
    view->lease = generation ? &generation->lease : &over;
    view->standing = &endless;
    memcpy(view->states, states, count * sizeof *states);
    shared->references++;
    if (generation)
        generation->references++;
    view->sets = xcalloc(count, sizeof *view->sets);
    view->asked = xcalloc(count, sizeof *view->asked);
    for (size_t i = 0; i < count; i++)
        view->asked[i] = asked_of(generation, i);
    return view;
}

void view_release(struct view *view)
{
    if (!view || --view->holders)
        return;
    for (size_t i = 0; i < view->config->keyspace_count; i++)
        key_set_release(view->sets[i]);
    free(view->sets);
    free(view->asked);
    generation_release(view->generation);
    shared_config_release(view->shared);
    free(view);
}
