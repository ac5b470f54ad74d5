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

#include "database/rows.h"
#include "guard/key.h"
#include "guard/overrides.h"
#include "redis/redis.h"

struct keeper;

const struct config *keeper_config(const struct keeper *keeper); /* in force */

/* Begins a generation whose snapshot is taken after this call. Returns its number; 0: the guard is
 * ending. */
uint64_t keeper_rebuild(struct keeper *keeper);

/* A key that a call of the control port is at work for: whether it may have a row that the database
 * did not show, for it was written through the guard meanwhile, or the log told of its insertion.
 * It is watched, so that workers tell. */
struct key_touch {
    struct key_touch *next;
    struct key key;
    bool touched;
    /* Set by who waits for the next probe of the database; called once. May close its own call. */
    void (*on_probe)(struct key_touch *touch);
};

void keeper_open_touch(struct keeper *keeper, struct key_touch *touch); /* its key is set */
void keeper_close_touch(struct keeper *keeper, struct key_touch *touch);

/* The call asks for the key's row now: it is touched only if the log has told of a change that
 * queries may not see yet. Returns that. */
bool keeper_renew_touch(const struct keeper *keeper, struct key_touch *touch);

/* Queries may not see yet what the log has told of the key. To wait until they do, set on_probe. */
bool keeper_has_unseen(const struct keeper *keeper, struct key key);
void keeper_hurry_unseen(struct keeper *keeper);

/* For questions to the database. */
const struct rows *keeper_rows(const struct keeper *keeper);

/* Asks the cache whether it has the key; deletes it there, behind any fill that was sent before. */
void keeper_ask_cache(struct keeper *keeper, struct key key, redis_answer_cb done, void *arg);
void keeper_purge(struct keeper *keeper, struct key key, redis_answer_cb done, void *arg);

/* What is in force for the key. */
struct override keeper_entry(const struct keeper *keeper, struct key key);

/* Sets an override here and in every worker, and marks what is under way for the key as changed;
 * `done` (may be NULL) is called when every worker has it, never before this has returned. -ENOSPC
 * when the table is full of others, -ESHUTDOWN while draining: then nothing is done. */
int keeper_override(struct keeper *keeper, struct key key, struct override entry,
                    void (*done)(void *arg), void *arg);

/* 0 when keeper_override() would set an entry of this key; else what it would return. */
int keeper_has_room(const struct keeper *keeper, struct key key);

/* An entry that begins now. for_ms 0: for as long as the sync mode needs it. */
struct override keeper_hint(const struct keeper *keeper, uint64_t for_ms);
struct override keeper_tombstone(const struct keeper *keeper);

#endif
