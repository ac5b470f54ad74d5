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
#include "keeper/parts/pushes.h"

struct keeper;
struct reload;  /* keeper/reload.h */
struct traffic; /* traffic/traffic.h */

const struct config *keeper_config(const struct keeper *keeper); /* in force */

/* Rates, attacks, and who asks how much, as of the last second. */
const struct traffic *keeper_traffic(const struct keeper *keeper);

/* Lookups that were rejected since that second, and over how many milliseconds that goes. */
uint64_t keeper_fresh_rejects(const struct keeper *keeper, uint64_t *ms);

/* Begins a generation whose snapshot is taken after this call. Returns its number; 0: the guard is
 * ending. */
uint64_t keeper_rebuild(struct keeper *keeper);

/* Reads the file again. `done` (may be NULL) is called once, from here or later, for a cache that
 * the file names anew is reached first, and the database asked for what it wants anew: with what
 * came of it, which lives until the call returns, and what is in force then; or with NULL, when the
 * guard ends before. 0; -ESHUTDOWN: it is ending;
 * -EBUSY: that is being done already. In both cases nothing was read, and `done` is not called. */
typedef void (*reload_done)(void *arg, const struct reload *reload, const struct config *now);
int keeper_reload(struct keeper *keeper, reload_done done, void *arg);

/* The parts that calls ask, each by its own functions. They live as long as any call. */
struct keeper_parts {
    struct entries *entries;       /* what is said of keys ahead of the filter */
    const struct loading *loading; /* rows, for questions; what queries may not see yet */
    struct purging *purging;       /* the cache */
    struct touches *touches;
    struct pushes *pushes;
};

struct keeper_parts keeper_parts(struct keeper *keeper);

#endif
