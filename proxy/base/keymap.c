/* Chained hashing. A second list through all nodes keeps the order of insertion, for those who
 * drop the oldest or go through a few at a time.
 *
 * When the number of buckets changes nodes move to the new ones some buckets at a time, with each
 * insertion and removal: to move half a million in one go would take tens of milliseconds. Until
 * then a hash belongs to exactly one bucket:
 *
 *   before:  moved | moved | still here | still here      from before.moved on
 *   buckets: the others
 */
#include "base/keymap.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

/* Drawn once for the process, with the first hash: who cannot read it cannot choose keys that all
 * fall into one bucket. */
static struct filter_seed seed;

static void draw_seed(void)
{
    if (filter_seed_random(&seed) < 0) {
        fputs("nestguard: the system gives no random bytes\n", stderr);
        abort();
    }
}

uint64_t keymap_hash(struct span key)
{
    static uv_once_t drawn = UV_ONCE_INIT;
    uv_once(&drawn, draw_seed);
    return filter_hash(&seed, key.at, key.length);
}

void keymap_init(struct keymap *map)
{
    *map = (struct keymap){0};
}

void keymap_finish(struct keymap *map)
{
    free(map->before.buckets);
    free(map->buckets);
    *map = (struct keymap){0};
}

static struct keymap_node **bucket_of(const struct keymap *map, uint64_t hash)
{
    const struct keymap_before *before = &map->before;
    size_t place = hash & (before->size - 1);
    return before->buckets && place >= before->moved ? &before->buckets[place]
                                                     : &map->buckets[hash & (map->size - 1)];
}

struct keymap_node *keymap_find(const struct keymap *map, struct span key, uint64_t hash)
{
    if (!map->count)
        return NULL;
    struct keymap_node *node = *bucket_of(map, hash);
    while (node && (node->hash != hash || node->key.length != key.length ||
                    memcmp(node->key.at, key.at, key.length) != 0))
        node = node->chain;
    return node;
}

/* The hash is kept in the node, so that resizing never touches the keys. */
static void put_in_bucket(struct keymap *map, struct keymap_node *node)
{
    struct keymap_node **bucket = bucket_of(map, node->hash);
    node->chain = *bucket;
    *bucket = node;
}

/* So many that all have moved before the number of buckets has to change again. */
static void move_some(struct keymap *map)
{
    enum { BUCKETS_AT_ONCE = 32 };
    struct keymap_before *before = &map->before;
    for (int i = 0; i < BUCKETS_AT_ONCE && before->moved < before->size; i++) {
        struct keymap_node *node = before->buckets[before->moved++], *next;
        for (; node; node = next) {
            next = node->chain;
            put_in_bucket(map, node);
        }
    }
    if (before->moved < before->size)
        return;
    free(before->buckets);
    *before = (struct keymap_before){0};
}

/* Doubles when there is a node a bucket on average, and halves at an eighth, so that a burst gives
 * its memory back. */
static void resize(struct keymap *map)
{
    size_t size = map->size ? map->size : 16;
    if (map->before.buckets)
        move_some(map);
    while (map->count > size)
        size *= 2;
    while (size > 16 && map->count < size / 8)
        size /= 2;
    if (size == map->size || map->before.buckets)
        return;
    map->before = (struct keymap_before){map->buckets, map->size, 0};
    map->buckets = xcalloc(size, sizeof *map->buckets);
    map->size = size;
}

void keymap_insert(struct keymap *map, struct keymap_node *node)
{
    if (!map->size)
        resize(map);
    put_in_bucket(map, node);
    node->newer = NULL;
    node->older = map->newest;
    if (map->newest)
        map->newest->newer = node;
    else
        map->oldest = node;
    map->newest = node;
    map->count++;
    resize(map);
}

/* Chains have no way back: a walk over a node or two on average, for a pointer less in each. */
void keymap_remove(struct keymap *map, struct keymap_node *node)
{
    struct keymap_node **at = bucket_of(map, node->hash);
    while (*at != node)
        at = &(*at)->chain;
    *at = node->chain;
    *(node->older ? &node->older->newer : &map->oldest) = node->newer;
    *(node->newer ? &node->newer->older : &map->newest) = node->older;
    map->count--;
    resize(map);
}
