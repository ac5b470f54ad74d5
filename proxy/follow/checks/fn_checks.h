/* False-negative checks: keys that the filter calls absent and that might have a row all the same:
 * each is looked into.
 *
 *   check ─▶ ask the database ─┬─ no row ─▶ cleared
 *             ▲                ├─ none of this key, but of another spelling of it ─▶ told as that
 *             ▲                └─ row ─▶ wait until the filter knows what was committed by then
 *             │                           ├─ possible now ─▶ cleared
 *             └──── not for the third ────┴─ absent ─▶ for the third time: confirmed
 *
 * A confirmed check is a false reject: the worst fault that there is. Two things raise checks: the
 * self-check, which samples rows of the table and expects the filter to know them, and shadow mode,
 * which samples what would have been rejected. On the keeper's thread.
 */
#ifndef NESTGUARD_FN_CHECKS_H
#define NESTGUARD_FN_CHECKS_H

#include "database/commit_visibility.h"
#include "database/rows.h"
#include "guard/view.h"

struct fn_checks;

struct fn_checks_options {
    const struct rows *rows;                    /* outlives the queries that are asked of it */
    unsigned max_at_once;                       /* more are not taken: fn_checks_add() says so */
    const struct commit_visibility *visibility; /* NULL: no log is followed */
};

enum fn_check_outcome {
    FN_CHECK_CLEARED,
    FN_CHECK_CONFIRMED,
    /* The database could not be asked, the row changes all the time, or the generation was given
     * up. */
    FN_CHECK_UNDECIDED,
    FN_CHECK_UNSEEN, /* the row may be gone already, by a commit that queries do not see yet */
    /* No row has this key, as the filter says; but one has it in another spelling (rows.h): the
     * filter is right, and whoever asks is likely to mean that row. */
    FN_CHECK_OTHER_SPELLING
};

/* Called once for each check that was taken, never before fn_checks_add() has returned. The key
 * lives until the call returns, and so does `other`, the row's own key with
 * FN_CHECK_OTHER_SPELLING. May use every function below but fn_checks_destroy(). */
typedef void (*fn_check_cb)(void *arg, struct key key, enum fn_check_outcome outcome,
                            struct span other);

struct fn_checks *fn_checks_create(const struct fn_checks_options *options);

/* Looks into a key for a generation, of which it holds a reference meanwhile. The key is copied.
 * false: too many are under way; a query whose check has ended counts until its answer. */
bool fn_checks_add(struct fn_checks *fn_checks, struct generation *generation, struct key key,
                   fn_check_cb done, void *arg);

/* A row with this key was inserted, updated or deleted by the log that `generation` follows. To be
 * told before the fn_checks_known() that covers its commit. Costs next to nothing without checks.
 */
void fn_checks_changed(struct fn_checks *fn_checks, const struct generation *generation,
                       struct key key);

/* Everything that was committed by `known` (clock_ms()) is in the filters of `generation`. Checks
 * end in no other call than this and fn_checks_forget(), or by an answer of the database; so this
 * is called again whenever more is known. Where no log is followed: now and then, with UINT64_MAX.
 */
void fn_checks_known(struct fn_checks *fn_checks, const struct generation *generation,
                     uint64_t known);

/* The generation is given up: its checks end undecided. */
void fn_checks_forget(struct fn_checks *fn_checks, const struct generation *generation);

/* Drops the checks that were added with this `arg`: nobody is called. */
void fn_checks_cancel(struct fn_checks *fn_checks, const void *arg);

/* Drops all: nobody is called. Queries may still be under way, their answers go nowhere. NULL is
 * allowed. */
void fn_checks_destroy(struct fn_checks *fn_checks);

#endif
