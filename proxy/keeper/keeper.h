/* The one thread that owns the truth: generations, overrides, loads, the control port. It runs
 * the process' main loop, and everything declared here belongs to that thread.
 *
 *   workers ◀─views, overrides─ keeper ─▶ loads ─▶ PostgreSQL, Redis
 *      └──────loads, hints────────▶   ├─▶ renewal (a builder thread at a time)
 *                                      └─▶ control port
 *
 * This is what the control port's calls may do with it. What they tell is in report.h.
 */
#ifndef NESTGUARD_KEEPER_H
#define NESTGUARD_KEEPER_H

#include "keeper/changes/entries.h"
#include "keeper/changes/touches.h"
#include "keeper/parts/loading.h"
#include "keeper/parts/purging.h"

struct keeper;
struct reload;  /* keeper/reload.h */
struct traffic; /* traffic/traffic.h */

const struct config *keeper_config(const struct keeper *keeper); /* in force */

/* Rates, attacks, and who asks how much, as of the last second. */
const struct traffic *keeper_traffic(const struct keeper *keeper);

/* Begins a generation whose snapshot is taken after this call. Returns its number; 0: the guard is
 * ending. */
uint64_t keeper_rebuild(struct keeper *keeper);

/* Reads the file again; what came of it is to be finished. False: the guard is ending, and nothing
 * was read. */
bool keeper_reload(struct keeper *keeper, struct reload *reload);

/* The parts that calls ask, each by its own functions. They live as long as any call. */
struct keeper_parts {
    struct entries *entries;       /* what is said of keys ahead of the filter */
    const struct loading *loading; /* rows, for questions; what queries may not see yet */
    struct purging *purging;       /* the cache */
    struct touches *touches;
};

struct keeper_parts keeper_parts(struct keeper *keeper);

#endif
