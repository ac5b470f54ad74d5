/* The map's order of insertion is the order of forgetting. */
#include "cache/negative_cache.h"

#include "base/memory.h"

#include <stdlib.h>

struct node {
    struct keymap_node map;
    struct key key;
    char text[];
};

void negative_cache_init(struct negative_cache *known, size_t limit, struct watch *watch)
{
    known->watch = watch;
    keymap_init(&known->map);
    known->limit = limit;
}

/* Each key is watched once for as long as it is in here: who drops it ends that, too. */
static void drop(struct negative_cache *known, struct keymap_node *node)
{
    struct node *absent = container_of(node, struct node, map);
    watch_drop(known->watch, absent->key);
    keymap_remove(&known->map, node);
    free(absent);
}

void negative_cache_limit(struct negative_cache *known, size_t limit)
{
    known->limit = limit;
    while (known->map.count > limit)
        drop(known, known->map.oldest);
}

void negative_cache_clear(struct negative_cache *known)
{
    while (known->map.oldest)
        drop(known, known->map.oldest);
}

void negative_cache_finish(struct negative_cache *known)
{
    negative_cache_clear(known);
    keymap_finish(&known->map);
}

/* A limit of 0 switches the memory off. */
void negative_cache_add(struct negative_cache *known, struct key key)
{
    if (!known->limit || key_find(&known->map, key))
        return;
    if (known->map.count >= known->limit)
        drop(known, known->map.oldest);
    struct node *node = xmalloc(sizeof *node + key.text.length);
    node->key = key_copy(key, node->text);
    key_insert(&known->map, &node->map, node->key);
    watch_add(known->watch, key);
}

void negative_cache_forget(struct negative_cache *known, struct key key)
{
    struct keymap_node *node = key_find(&known->map, key);
    if (node)
        drop(known, node);
}

bool negative_cache_has(const struct negative_cache *known, struct key key)
{
    return key_find(&known->map, key) != NULL;
}
