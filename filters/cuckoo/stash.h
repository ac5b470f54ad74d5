/* A small exact set beside a table: entries that found no place there, with their full hashes, and
 * each with the number of its copies.
 *
 * Readers beside one writer, without locks. A bit of `used` says that the hash of the same number
 * counts; the hash is written before the bit is set. The numbers of copies are the writer's own.
 * Private to filters/.
 */
#ifndef NESTGUARD_STASH_H
#define NESTGUARD_STASH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STASH_SIZE = 64 }; /* one bit each in `used` */

/* All zero is an empty stash. */
struct stash {
    _Atomic(uint64_t) used;
    _Atomic(uint64_t) hashes[STASH_SIZE];
    uint32_t copies[STASH_SIZE];
};

/* Adds an entry with one copy; false when the stash is full. */
bool stash_put(struct stash *stash, uint64_t hash);

/* The number of the entry with exactly this hash, or -1. Its loads acquire. */
int stash_find(const struct stash *stash, uint64_t hash);

/* The number of the first entry after number `after`, in a circle; -1 when the stash is empty. */
int stash_next(const struct stash *stash, int after);
uint64_t stash_hash(const struct stash *stash, int number);

/* One copy more of an entry; false when there are more than can be counted. */
bool stash_add_copy(struct stash *stash, int number);

/* Takes an entry out, with all its copies. */
void stash_clear(struct stash *stash, int number);

unsigned stash_count(const struct stash *stash); /* of entries */

/* False is the common answer of a reader, so it costs one load. */
static inline bool stash_has(const struct stash *stash, uint64_t hash)
{
    return atomic_load_explicit(&stash->used, memory_order_acquire) != 0 &&
           stash_find(stash, hash) >= 0;
}

#endif
