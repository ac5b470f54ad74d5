/* Purges: keys whose rows changed are deleted from the cache, whatever happens to it meanwhile.
 *
 *   purger_key() ─▶ owed ─▶ DEL, up to 64 keys at a time ─▶ done
 *                   ▲  │          └─ refused, or its fate unknown ─┐
 *                   └──┼─────────────── later again ◀──────────────┘
 *                      └─ too many ─▶ the keyspace is owed whole: SCAN, and DEL of all that
 *                                     matches its template
 *
 * While the cache is up that takes no longer than a turn of the loop. While it is down, or refuses,
 * keys are owed, each once; what is owed goes out as soon as the cache is back. A cache that is
 * another server then, or not surely the same with the same data, may have forgotten what the last
 * one confirmed, so that every keyspace is owed whole.
 *
 * Nobody ever waits for the cache: whoever tells of changed keys goes on, and what they are more
 * than may be remembered is left to one sweep, which begins when the keys that are remembered are
 * on their way: after the flood.
 *
 * On the keeper's thread. A fill that was sent before purger_key() runs before that key's DEL, for
 * both go over one struct redis. A fill that is sent later must not hold what the row was before:
 * loads_changed() sees to that.
 */
#ifndef NESTGUARD_PURGER_H
#define NESTGUARD_PURGER_H

#include "cache/vouched.h"
#include "config/config.h"
#include "guard/counters.h"
#include "guard/key.h"
#include "redis/redis.h"

struct purger;

struct purger_options {
    struct redis *redis; /* one server */
    struct redis *all;   /* the cluster that it is a node of; NULL: of none */
    uv_loop_t *loop;
    const struct config *config;    /* keyspaces and their templates; until another is used */
    struct load_counters *counters; /* one for each number: purges, purges_refused */
    size_t max_owed;                /* keys remembered one by one, of all keyspaces */
    struct vouched *vouched; /* is told of the server when it lacks no deletion. NULL: nobody is */
};

struct purger *purger_create(const struct purger_options *options);

/* No fewer keyspaces than before. */
void purger_use_config(struct purger *purger, const struct config *config);

void purger_key(struct purger *purger, struct key key);
/* Everything that matches its template. */
void purger_keyspace(struct purger *purger, int keyspace);

/* Everything of all keyspaces: for this reason the server may have forgotten what was deleted. */
void purger_doubt(struct purger *purger, const char *why);

/* Since then it was not swept. */
bool purger_is_doubted(const struct purger *purger);

/* In a cluster: of the slots that `taker` has from `giver` it may have keys that were to be deleted
 * there, and that no sweep has found. */
bool purger_may_have_given(const struct purger *giver, const struct purger *taker);

/* In a cluster: gives what is owed key by key to `take`, where some of it may be another node's by
 * now; with `whole`, also what is owed whole, which it owes no more. */
void purger_hand_over(struct purger *purger, void (*take)(void *arg, struct key key),
                      void (*whole)(void *arg, int keyspace), void *arg);

/* In a cluster: the node has ended, and its struct redis ends with this call. What was sent may be
 * under way to another node, where it had to go: the purger lives until nothing is owed. */
void purger_retire(struct purger *purger);

/* To be told when the cache connection has come up and gone down (struct redis' state callback). */
void purger_cache_is(struct purger *purger, bool up);

/* Keys whose deletion the cache has not confirmed; SIZE_MAX when a keyspace is owed whole. */
size_t purger_owed(const struct purger *purger);

/* No keyspace is owed whole, and what was found of those that were has been deleted. */
bool purger_is_swept(const struct purger *purger);

/* Nothing more will be sent: the log is told what is owed and may be stale. */
void purger_give_up(const struct purger *purger);

/* When redis has ended, so that nothing is in flight. The loop still has to run: handles close. */
void purger_destroy(struct purger *purger);

#endif
