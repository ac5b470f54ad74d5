/* References are plain numbers. A view's are its holders: one for each worker, and the keeper's
 * own. A view in turn refers to its generation and its configuration, which many views share.
 */
#include "view.h"

#include "clock.h"
#include "memory.h"

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
    generation->number = number;
    generation->count = keyspaces;
    generation->filters = xcalloc(keyspaces, sizeof *generation->filters);
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
    free(generation->filters);
    free(generation);
}

size_t generation_bytes(const struct generation *generation)
{
    size_t bytes = 0;
    for (size_t i = 0; i < generation->count; i++)
        bytes += filter_stats(generation->filters[i]).bytes;
    return bytes;
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

bool view_may_reject(const struct view *view, int keyspace)
{
    if (view->states[keyspace] != KEYSPACE_GUARDING)
        return false;
    uint64_t until = atomic_load_explicit(&view->generation->lease, memory_order_acquire);
    return until == UINT64_MAX || clock_ms() < until;
}

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
    memcpy(view->states, states, count * sizeof *states);
    shared->references++;
    if (generation)
        generation->references++;
    return view;
}

void view_release(struct view *view)
{
    if (!view || --view->holders)
        return;
    generation_release(view->generation);
    shared_config_release(view->shared);
    free(view);
}
