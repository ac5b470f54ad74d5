/* The map's order of insertion is the order of forgetting. */
#include "cache/known_absent.h"

#include "base/memory.h"

#include <stdlib.h>

struct node {
    struct keymap_node map;
    char key[];
};

void known_absent_init(struct known_absent *known, size_t limit, struct watch *watch)
{
    known->watch = watch;
    keymap_init(&known->map);
    known->limit = limit;
}

static void drop(struct known_absent *known, struct keymap_node *node)
{
    watch_drop(known->watch, node->key);
    keymap_remove(&known->map, node);
    free(container_of(node, struct node, map));
}

void known_absent_limit(struct known_absent *known, size_t limit)
{
    known->limit = limit;
    while (known->map.count > limit)
        drop(known, known->map.oldest);
}

void known_absent_clear(struct known_absent *known)
{
    while (known->map.oldest)
        drop(known, known->map.oldest);
}

void known_absent_finish(struct known_absent *known)
{
    known_absent_clear(known);
    keymap_finish(&known->map);
}

/* A limit of 0 switches the memory off. */
void known_absent_add(struct known_absent *known, struct span key)
{
    if (!known->limit || keymap_find(&known->map, key))
        return;
    if (known->map.count >= known->limit)
        drop(known, known->map.oldest);
    struct node *node = xmalloc(sizeof *node + key.length);
    memcpy(node->key, key.at, key.length);
    node->map.key = (struct span){node->key, key.length};
    keymap_insert(&known->map, &node->map);
    watch_add(known->watch, key);
}

void known_absent_forget(struct known_absent *known, struct span key)
{
    struct keymap_node *node = keymap_find(&known->map, key);
    if (node)
        drop(known, node);
}

bool known_absent_has(const struct known_absent *known, struct span key)
{
    return keymap_find(&known->map, key) != NULL;
}
