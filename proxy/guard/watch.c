/* One counter a place, as in a counting Bloom filter of one hash (Fan et al., "Summary cache",
 * 1998); each add has its drop, so none falls below zero.
 *
 * Additions and looks are of the strictest order that there is (sequentially consistent, what
 * atomics do unless told otherwise): the header's argument is about what came first on two threads,
 * and an order of each place alone would not carry it.
 */
#include "guard/watch.h"

#include "base/memory.h"

#include <stdatomic.h>
#include <stdlib.h>

/* With so many, a key that nobody watches is taken for watched one time in eight at most: a message
 * to the keeper, and nothing else. */
enum { PLACES_PER_KEY = 8, PLACES_MIN = 4096 };

struct watch {
    size_t mask;               /* places, less one; their number is a power of two */
    _Atomic uint32_t counts[]; /* keys watched that have this place */
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
