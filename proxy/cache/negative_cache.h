/* The false positives that were found out: keys that a filter takes for possible and the database
 * did not have. Bounded; the oldest goes first, and forgetting one only costs another query.
 *
 * To keep one too long is what must not happen: a row may come to be. So its keys are watched,
 * which has workers tell of writes; the log's changes forget them; and they go with the generation
 * under which they were found out, and with enforcement (loads_absent.c). On the keeper's thread.
 */
#ifndef NESTGUARD_NEGATIVE_CACHE_H
#define NESTGUARD_NEGATIVE_CACHE_H

#include "guard/watch.h"
#include <stdbool.h>

struct negative_cache {
    struct keymap map;
    size_t limit; /* keys; 0: none is remembered */
    struct watch *watch;
};

void negative_cache_init(struct negative_cache *known, size_t limit,
                         struct watch *watch);                         /* watches its keys */
void negative_cache_limit(struct negative_cache *known, size_t limit); /* from now on */
void negative_cache_clear(struct negative_cache *known);               /* forgets all */
void negative_cache_finish(struct negative_cache *known);

/* Keys are copied; one that is there already stays where it is in the order. */
void negative_cache_add(struct negative_cache *known, struct key key);
void negative_cache_forget(struct negative_cache *known, struct key key);
bool negative_cache_has(const struct negative_cache *known, struct key key);

#endif
