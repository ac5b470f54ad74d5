/* A key of a keyspace, with its hash, which is computed once: every exact table finds it by that.
 * (Filters have hashes of their own, for each generation draws another seed. So has a worker no use
 * for this one while it rejects: what it calls for each lookup takes keyspace and text.)
 */
#ifndef NESTGUARD_KEY_H
#define NESTGUARD_KEY_H

#include "base/keymap.h"
#include <stdbool.h>
#include <string.h>

struct key {
    struct span text; /* lives as long as whoever made the key says */
    uint64_t hash;    /* keymap_hash() of it */
    int keyspace;
};

static inline struct key key_make(int keyspace, struct span text)
{
    return (struct key){text, keymap_hash(text), keyspace};
}

/* The same key with its text copied to `room`, which holds key.text.length bytes. */
static inline struct key key_copy(struct key key, char *room)
{
    memcpy(room, key.text.at, key.text.length);
    key.text.at = room;
    return key;
}

/* The hash first: it tells nearly all apart without a look at the texts. */
static inline bool key_equals(struct key one, struct key other)
{
    return one.hash == other.hash && one.keyspace == other.keyspace &&
           one.text.length == other.text.length &&
           memcmp(one.text.at, other.text.at, one.text.length) == 0;
}

/* In a table of keys. The text outlives the node. */
static inline struct keymap_node *key_find(const struct keymap *map, struct key key)
{
    return keymap_find(map, key.text, key.hash);
}

static inline void key_insert(struct keymap *map, struct keymap_node *node, struct key key)
{
    node->key = key.text;
    node->hash = key.hash;
    keymap_insert(map, node);
}

#endif
