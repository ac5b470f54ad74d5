/* A keyspace that is remembered whole stays in the list with the keys that came before; they are
 * passed over when all are given, for its sweep covers them. So to overflow costs no search.
 */
#include "cache/unvouched.h"

#include "base/keymap.h"
#include "base/memory.h"

#include <stdbool.h>
#include <stdlib.h>

struct filled_key {
    struct keymap_node node;
    struct key key;
    char text[];
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

void unvouched_add(struct unvouched *unvouched, struct key key)
{
    if (unvouched->whole[key.keyspace] || key_find(&unvouched->keys, key))
        return;
    if (unvouched->keys.count >= unvouched->max_keys) {
        unvouched->whole[key.keyspace] = true;
        return;
    }
    struct filled_key *filled = xmalloc(sizeof *filled + key.text.length);
    filled->key = key_copy(key, filled->text);
    key_insert(&unvouched->keys, &filled->node, filled->key);
}

/* Sweeps first: they cover keys that were remembered before the memory was full. */
void unvouched_give(struct unvouched *unvouched, void (*all)(void *arg, int keyspace),
                    void (*one)(void *arg, struct key key), void *arg)
{
    for (size_t i = 0; i < unvouched->keyspaces; i++)
        if (unvouched->whole[i])
            all(arg, (int)i);
    for (struct keymap_node *node = unvouched->keys.oldest; node; node = node->newer) {
        struct key key = container_of(node, struct filled_key, node)->key;
        if (!unvouched->whole[key.keyspace])
            one(arg, key);
    }
    forget(unvouched);
}
