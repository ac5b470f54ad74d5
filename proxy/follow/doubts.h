/* Keys that the filter calls absent and that might have a row all the same: each is looked into.
 *
 *   doubt ─▶ ask the database ─┬─ no row ─▶ cleared
 *             ▲                ├─ none of this key, but of another spelling of it ─▶ told as that
 *             ▲                └─ row ─▶ wait until the filter knows what was committed by then
 *             │                           ├─ possible now ─▶ cleared
 *             └──── not for the third ────┴─ absent ─▶ for the third time: confirmed
 *
 * A confirmed doubt is a false reject: the worst fault that there is. Two things raise doubts: the
 * self-check, which samples rows of the table and expects the filter to know them, and shadow mode,
 * which samples what would have been rejected. On the keeper's thread.
 */
#ifndef NESTGUARD_DOUBTS_H
#define NESTGUARD_DOUBTS_H

#include "database/rows.h"
#include "database/unseen.h"
#include "guard/view.h"

struct doubts;

struct doubts_options {
    const struct rows *rows;     /* outlives the queries that are asked of it */
    unsigned max_at_once;        /* more are not taken: doubts_add() says so */
    const struct unseen *unseen; /* NULL: no log is followed */
};

enum doubt_outcome {
    DOUBT_CLEARED,
    DOUBT_CONFIRMED,
    /* The database could not be asked, the row changes all the time, or the generation was given
     * up. */
    DOUBT_UNDECIDED,
    DOUBT_UNSEEN, /* the row may be gone already, by a commit that queries do not see yet */
    /* No row has this key, as the filter says; but one has it in another spelling (rows.h): the
     * filter is right, and whoever asks is likely to mean that row. */
    DOUBT_OTHER_SPELLING
};

/* Called once for each doubt that was taken, never before doubts_add() has returned. The key lives
 * until the call returns, and so does `other`, the row's own key with DOUBT_OTHER_SPELLING. May use
 * every function below but doubts_destroy(). */
typedef void (*doubt_cb)(void *arg, struct key key, enum doubt_outcome outcome, struct span other);

struct doubts *doubts_create(const struct doubts_options *options);

/* Looks into a key for a generation, of which it holds a reference meanwhile. The key is copied.
 * false: too many are under way; a query whose doubt has ended counts until its answer. */
bool doubts_add(struct doubts *doubts, struct generation *generation, struct key key, doubt_cb done,
                void *arg);

/* A row with this key was inserted, updated or deleted by the log that `generation` follows. To be
 * told before the doubts_known() that covers its commit. Costs next to nothing without doubts. */
void doubts_changed(struct doubts *doubts, const struct generation *generation, struct key key);

/* Everything that was committed by `known` (clock_ms()) is in the filters of `generation`. Doubts
 * end in no other call than this and doubts_forget(), or by an answer of the database; so this is
 * called again whenever more is known. Where no log is followed: now and then, with UINT64_MAX. */
void doubts_known(struct doubts *doubts, const struct generation *generation, uint64_t known);

/* The generation is given up: its doubts end undecided. */
void doubts_forget(struct doubts *doubts, const struct generation *generation);

/* Drops the doubts that were added with this `arg`: nobody is called. */
void doubts_cancel(struct doubts *doubts, const void *arg);

/* Drops all: nobody is called. Queries may still be under way, their answers go nowhere. NULL is
 * allowed. */
void doubts_destroy(struct doubts *doubts);

#endif
