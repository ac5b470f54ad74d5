/* A map from key bytes to whatever embeds a keymap_node: exact, unlike a filter. Clients choose the
 * keys, so they are hashed with SipHash under a secret seed, the same for all maps: who looks a key
 * up in several hashes it once. A map is one thread's.
 */
#ifndef NESTGUARD_KEYMAP_H
#define NESTGUARD_KEYMAP_H

#include "base/container_of.h" /* from a node to what embeds it */
#include "base/span.h"
#include "filters/filter.h"
#include <stddef.h>

/* Chains and buckets: about as many buckets as keys, and at most eight times as many; their number
 * changes bit by bit. The order of insertion is kept beside them, so that the oldest can go first
 * and all can be gone through; who removes a node while going through takes its `newer` before. */
struct keymap_node {
    struct keymap_node *chain;         /* in its bucket */
    struct keymap_node *older, *newer; /* in order of insertion */
    struct span key; /* owned by whoever owns the node; must not change while it is in */
    uint64_t hash;   /* keymap_hash() of it */
};

/* The buckets that there were until their number changed: those from `moved` on hold their nodes
 * still. NULL: all have moved. */
struct keymap_before {
    struct keymap_node **buckets;
    size_t size, moved;
};

struct keymap {
    struct keymap_node **buckets;
    size_t size; /* of buckets; a power of two, or 0 */
    struct keymap_before before;
    size_t count;
    struct keymap_node *oldest, *newest;
};

/* Empty, as zeroed memory is. */
void keymap_init(struct keymap *map);
void keymap_finish(struct keymap *map); /* the nodes are the caller's to free, before */

uint64_t keymap_hash(struct span key); /* any thread */

/* NULL: not in. `hash` is the key's. */
struct keymap_node *keymap_find(const struct keymap *map, struct span key, uint64_t hash);
/* Key and hash are set, and not in the map yet. */
void keymap_insert(struct keymap *map, struct keymap_node *node);
void keymap_remove(struct keymap *map, struct keymap_node *node); /* node is in */

#endif
