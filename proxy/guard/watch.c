#include "guard/watch.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { PLACES_PER_KEY = 8, PLACES_MIN = 4096 };

struct watch {
    size_t mask;
    _Atomic uint32_t counts[];
};

struct watch *watch_create(size_t keys)
{
    size_t places = PLACES_MIN;
    while (places < keys * PLACES_PER_KEY)
        places *= 2;
    struct watch *watch = xcalloc(1, sizeof *watch + places * sizeof watch->counts[0]);
    watch->mask = places - 1;
    return watch;
}

void watch_destroy(struct watch *watch)
{
    free(watch);
}

static size_t place_of(const struct watch *watch, struct key key)
{
    return key.hash & watch->mask;
}

void watch_add(struct watch *watch, struct key key)
{
    if (watch)
        atomic_fetch_add(&watch->counts[place_of(watch, key)], 1);
}

void watch_drop(struct watch *watch, struct key key)
{
    if (watch)
        atomic_fetch_sub(&watch->counts[place_of(watch, key)], 1);
}

bool watch_has(const struct watch *watch, struct key key)
{
    return watch && atomic_load(&watch->counts[place_of(watch, key)]) != 0;
}
