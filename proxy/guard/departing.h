/* Keys that a filter holds though the log has told that their rows are gone (follow/removals.h), by
 * a part of their hashes: some others look as if they were departing, too. Who writes such a key
 * must have a hint, for the filter knows it no longer than a moment.
 *
 *   removal told ─▶ departing_add() ─── the filter still holds it ─▶ removed ─▶ departing_drop()
 *   a write looks  here first, then at the filter: one of them says that it needs a hint
 *
 * The thread that changes the filter counts, any other asks. A purge goes out behind
 * departing_add(): so a value that was written without a hint is mostly purged, and no use to
 * anybody. (One that the cache gets behind the purge, of a writer who looked ahead of it, has none:
 * that is as long as a command is under way to the cache, or in pieces.)
 */
#ifndef NESTGUARD_DEPARTING_H
#define NESTGUARD_DEPARTING_H

#include "config/config.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A megabyte, if many do. While n depart, n / DEPARTING_PLACES of all others look so: 4 % beside
 * 10,000 deleted rows. */
enum { DEPARTING_PLACES = 1 << 18 };

/* Zeroed: none departs. */
struct departing {
    _Atomic size_t all;                /* mostly 0: then no key is hashed to be looked for */
    _Atomic bool whole[KEYSPACES_MAX]; /* of each keyspace: all of its keys may be */
    _Atomic uint32_t at[DEPARTING_PLACES];
};

static inline _Atomic uint32_t *departing_place(struct departing *departing, uint64_t hash)
{
    return &departing->at[hash % DEPARTING_PLACES];
}

static inline void departing_add(struct departing *departing, uint64_t hash)
{
    atomic_fetch_add_explicit(departing_place(departing, hash), 1, memory_order_release);
    atomic_fetch_add_explicit(&departing->all, 1, memory_order_release);
}

/* Behind the removal from the filter. */
static inline void departing_drop(struct departing *departing, uint64_t hash)
{
    atomic_fetch_sub_explicit(&departing->all, 1, memory_order_release);
    atomic_fetch_sub_explicit(departing_place(departing, hash), 1, memory_order_release);
}

/* The keyspace's table was emptied, or rows have left it that the log does not name: what the
 * filter holds goes with the generation. */
static inline void departing_add_whole(struct departing *departing, int keyspace)
{
    atomic_store_explicit(&departing->whole[keyspace], true, memory_order_release);
    atomic_fetch_add_explicit(&departing->all, 1, memory_order_release);
}

static inline bool departing_any(const struct departing *departing)
{
    return atomic_load_explicit(&departing->all, memory_order_acquire) > 0;
}

static inline bool departing_has(const struct departing *departing, int keyspace, uint64_t hash)
{
    return atomic_load_explicit(&departing->at[hash % DEPARTING_PLACES], memory_order_acquire) ||
           atomic_load_explicit(&departing->whole[keyspace], memory_order_acquire);
}

#endif
