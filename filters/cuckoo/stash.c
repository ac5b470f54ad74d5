/* The stash of a filter. Every store releases and every load of a reader acquires: a reader that
 * sees a bit sees its hash, and one that sees a place reused also sees all that the writer did
 * before (cuckoo.c says why that matters). */
#include "filters/cuckoo/stash.h"

static int lowest(uint64_t bits)
{
    return __builtin_ctzll(bits);
}

/* Of the writer's own words, which nobody else changes. */
static uint64_t own_used(const struct stash *stash)
{
    return atomic_load_explicit(&stash->used, memory_order_relaxed);
}

bool stash_put(struct stash *stash, uint64_t hash)
{
    uint64_t used = own_used(stash);
    if (used == UINT64_MAX)
        return false;
    int number = lowest(~used);
    stash->copies[number] = 1;
    atomic_store_explicit(&stash->hashes[number], hash, memory_order_release);
    atomic_store_explicit(&stash->used, used | UINT64_C(1) << number, memory_order_release);
    return true;
}

int stash_find(const struct stash *stash, uint64_t hash)
{
    uint64_t left = atomic_load_explicit(&stash->used, memory_order_acquire);
    for (; left; left &= left - 1) {
        int number = lowest(left);
        if (atomic_load_explicit(&stash->hashes[number], memory_order_acquire) == hash)
            return number;
    }
    return -1;
}

/* A shift by all 64 bits would be undefined: behind the last number nothing is later. */
int stash_next(const struct stash *stash, int after)
{
    uint64_t used = own_used(stash);
    if (!used)
        return -1;
    uint64_t later = after + 1 < STASH_SIZE ? used >> (after + 1) << (after + 1) : 0;
    return lowest(later ? later : used);
}

uint64_t stash_hash(const struct stash *stash, int number)
{
    return atomic_load_explicit(&stash->hashes[number], memory_order_relaxed);
}

bool stash_add_copy(struct stash *stash, int number)
{
    if (stash->copies[number] == UINT32_MAX)
        return false;
    stash->copies[number]++;
    return true;
}

/* The hash stays where it is: a reader that still sees the bit must find it whole. */
void stash_clear(struct stash *stash, int number)
{
    uint64_t used = own_used(stash) & ~(UINT64_C(1) << number);
    atomic_store_explicit(&stash->used, used, memory_order_release);
}

unsigned stash_count(const struct stash *stash)
{
    return (unsigned)__builtin_popcountll(own_used(stash));
}
