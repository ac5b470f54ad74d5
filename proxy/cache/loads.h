/* The keeper's loads: one query for everybody who waits for a key, the fill behind it, and what is
 * remembered.
 *
 *   request ─▶ known absent? ─▶ in flight? join ─▶ line ─▶ query ─▶ answers ─▶ fill ─▶ done
 *
 * The races that caches die of are decided here, by the order of events on the keeper's thread:
 *
 * - loads_changed(key) means that the key's row, or what is said of it, has changed. A load that
 * was on its way then is stale: its answer still serves those who had asked before, but nothing of
 * it is kept: no fill, no remembered absence.
 * - The log may tell of a commit before its rows can be seen (commit_visibility.h). What a query
 * says of such a key still serves those who had asked before it was sent, but nothing of it is
 * kept.
 * - Whoever joins a query that is on its way may have seen a commit that the query does not see. A
 *   row that it finds is good for them unless it is stale or unseen. But "no row" is not: they are
 *   told so only by a query that began after they had asked.
 * - Each request's patience counts from its own asking, whoever else waits for the key. When one's
 *   time is over he is told, and the others wait on for the same query, joined by whoever comes: it
 *   is never asked a second time while it is on its way. When the database gives it up, those who
 *   had asked before it was sent are told; who joined since and has time left gets another query.
 *   So does everybody who has time left where it was given up before its own time was over
 *   (pg_answer.h), as often as that happens: his patience is the bound.
 * - A remembered absence belongs to the generation under which its query began: a row that the next
 *   snapshot holds must not be denied. In shadow mode none is remembered, nor answered by.
 */
#ifndef NESTGUARD_LOADS_H
#define NESTGUARD_LOADS_H

#include "cache/refusals.h"
#include "cache/spellings.h"
#include "database/commit_visibility.h"
#include "database/rows.h"
#include "guard/counters.h"
#include "guard/histogram.h"
#include "guard/messages.h"
#include "guard/view.h"
#include "guard/watch.h"
#include "redis/redis.h"
#include <uv.h>

struct loads;

enum { LOADS_QUEUE_BYTES = 32 * 1024 * 1024 }; /* of requests that wait; of more some are cut */

/* Of the lines that requests wait in for a turn at the database. */
struct loads_waits {
    size_t now, bytes;      /* requests that wait */
    size_t window;          /* loads that may be at the database at once while others wait */
    struct durations turns; /* how long those had waited who got their turn */
};

/* What the database has said of a key, as far as its time matters. */
enum loads_answer { LOADS_ROW, LOADS_ABSENT, LOADS_ERROR, LOADS_ANSWERS };

struct loads_options {
    const struct rows *rows;
    struct redis *redis;
    struct load_counters *counters; /* one for each keyspace */
    struct watch *watch;            /* where keys that it is at work for are watched; may be NULL */
    struct commit_visibility *visibility; /* NULL: no log is followed */
    /* A value is about to be sent to the cache. May be NULL. */
    void (*filling)(void *arg, struct key key);
    /* Somebody says that the key has a row: that a query sees none yet is not remembered. May be
     * NULL. */
    bool (*is_expected)(void *arg, struct key key);
    void *arg;
    struct spellings *spellings; /* is told of keys in another spelling; may be NULL */
};

struct loads *loads_create(const struct loads_options *options, const struct view *view);
/* When pool and redis have ended, so that nothing is in flight. */
void loads_destroy(struct loads *loads);

/* The view that holds from now on; its generation's change forgets the remembered absences, and so
 * does a keyspace's that enforces no more; its configuration bounds them. */
void loads_use_view(struct loads *loads, const struct view *view);

/* What is filled from now on. */
void loads_use_cache(struct loads *loads, struct redis *redis);

/* Takes the request; it goes back to its sender when it is answered. */
void loads_submit(struct loads *loads, struct load_request *request);

void loads_changed(struct loads *loads, struct key key);

/* Any row may have changed, and with it what is said of its key. */
void loads_all_changed(struct loads *loads);

/* A command that may take any key out of the cache. It waits for the fills that were there before
 * it, and those that come behind it wait for its end: so neither waits for ever, however many there
 * are of the other, and nothing that was read before it gets to the cache behind it. */
struct loads_clearing;

/* begin(arg) is called once, when it may go to the cache, but not before this has returned; unless
 * *begun, which is that it may at once. It is the loads', until loads_end_clearing() or their end.
 */
struct loads_clearing *loads_begin_clearing(struct loads *loads, void (*begin)(void *arg),
                                            void *arg, bool *begun);

/* One that has begun. If it was done, loads_all_changed() comes before this. */
void loads_end_clearing(struct loads *loads, struct loads_clearing *clearing);

/* What any row of the keyspace is in the cache may have changed; which rows there are has not. */
void loads_revalued(struct loads *loads, int keyspace);

/* Every 100 ms or so: answers those who have waited for longer than load_timeout, in line or for
 * the database. */
void loads_check_time(struct loads *loads, uint64_t now);

/* Answers everybody who still waits: the guard is ending. */
void loads_give_up(struct loads *loads);

bool loads_in_flight(const struct loads *loads, struct key key);
bool loads_knows_absent(const struct loads *loads, struct key key);
size_t loads_count(const struct loads *loads); /* queries on their way */
/* As refusals_latest(), until another view is used. */
const struct refused_load *loads_refusal(const struct loads *loads, size_t keyspace);

/* For rows.h's lane of large rows: of a load that was given to rows_load(), who asked for it;
 * whether somebody still waits for it; that so many bytes go to the account of who does; and, of
 * the loads, that one is there, whose place others may have. */
struct row_lane_asker loads_asker_of(const void *load);
bool loads_wants(const void *load);
void loads_pay(void *arg, const void *load, size_t bytes); /* arg: the loads */
void loads_have_place(void *loads);

struct loads_waits loads_waits(const struct loads *loads);
/* How long the database took, from the sending of a query to its answer. */
void loads_durations(const struct loads *loads, struct durations to[LOADS_ANSWERS]);

#endif
