#include "cache/unvouched.h"

#include "base/keymap.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>

struct filled_key {
    struct keymap_node node;
    int keyspace;
    char bytes[];
};

struct unvouched {
    struct keymap keys;
    size_t max_keys, keyspaces;
    bool *whole; /* keyspaces; those of their keys that are remembered do not matter */
};

struct unvouched *unvouched_create(size_t keyspaces, size_t max_keys)
{
    struct unvouched *unvouched = xcalloc(1, sizeof *unvouched);
    keymap_init(&unvouched->keys);
    unvouched->max_keys = max_keys;
    unvouched->keyspaces = keyspaces;
    unvouched->whole = xcalloc(keyspaces, sizeof *unvouched->whole);
    return unvouched;
}

static void forget(struct unvouched *unvouched)
{
    while (unvouched->keys.oldest) {
        struct filled_key *key = container_of(unvouched->keys.oldest, struct filled_key, node);
        keymap_remove(&unvouched->keys, &key->node);
        free(key);
    }
    for (size_t i = 0; i < unvouched->keyspaces; i++)
        unvouched->whole[i] = false;
}

void unvouched_destroy(struct unvouched *unvouched)
{
    if (!unvouched)
        return;
    forget(unvouched);
    keymap_finish(&unvouched->keys);
    free(unvouched->whole);
    free(unvouched);
}

void unvouched_add(struct unvouched *unvouched, int keyspace, struct span bytes)
{
    if (unvouched->whole[keyspace] || keymap_find(&unvouched->keys, bytes))
        return;
    if (unvouched->keys.count >= unvouched->max_keys) {
        unvouched->whole[keyspace] = true;
        return;
    }
    struct filled_key *key = xmalloc(sizeof *key + bytes.length);
    memcpy(key->bytes, bytes.at, bytes.length);
    key->keyspace = keyspace;
    key->node.key = (struct span){key->bytes, bytes.length};
    keymap_insert(&unvouched->keys, &key->node);
}

void unvouched_give(struct unvouched *unvouched,
                    void (*purge)(void *arg, int keyspace, const struct span *key), void *arg)
{
    for (size_t i = 0; i < unvouched->keyspaces; i++)
        if (unvouched->whole[i])
            purge(arg, (int)i, NULL);
    for (struct keymap_node *node = unvouched->keys.oldest; node; node = node->newer) {
        int keyspace = container_of(node, struct filled_key, node)->keyspace;
        if (!unvouched->whole[keyspace])
            purge(arg, keyspace, &node->key);
    }
    forget(unvouched);
}
