/* Old values are kept out of the cache, those of which a row's change tells and those of which none
 * does:
 *
 *   a row's change ───────────────────────────────────────────────────────────▶ its key ─▶ DEL
 *   filled before a log was followed ─▶ unvouched ─┐  a log is followed, or the guard ends
 *   the log was lost for a while ─────▶ missed ────┼──────────────▶ purged
 *   DDL ─▶ another answer ─▶ values ───────────────┴─ at once ────▶
 *
 * Without a log, in the place of its first following is the first generation: with it comes what
 * its values are made of, as it was when the building began.
 *
 * Each is a cause of changes.h, which says that whatever is being loaded is old before it purges,
 * so that none of it is filled behind the purge. What was filled before was sent before, over the
 * same connection to the cache. And what is asked later is told by the log that is followed by
 * then, but for what it told, or was over when it began, and is not visible yet:
 * commit_visibility.h sees to that.
 */
#ifndef NESTGUARD_PURGING_H
#define NESTGUARD_PURGING_H

#include "cache/purgers.h"
#include "cache/unvouched.h"
#include "follow/values.h"
#include "keeper/changes/changes.h"
#include "keeper/parts/replication.h"
#include "keeper/parts/report.h"

struct purging_options {
    uv_loop_t *loop;
    const struct config *config; /* of the start */
    struct redis *redis;
    struct load_counters *counters;        /* by keyspaces' numbers */
    struct vouched *vouched;               /* as in purger.h */
    struct change_sink changes;            /* are told what is old; among them is this part again */
    const struct replication *replication; /* whether a log tells of rows */
};

struct purging {
    struct purging_options options;
    struct purgers purgers;
    struct purging_other { /* the cache that is to come, or the one that is being left */
        bool is_there;     /* there is such a cache */
        struct redis *redis;
        struct purgers purgers;
    } other;
    struct unvouched *unvouched;
    struct values *values;
};

/* The options are copied; what they point to outlives it, but for the configuration. */
void purging_open(struct purging *purging, const struct purging_options *options);

/* There is a second cache, which is up: each change is purged there, too, from now on; and all keys
 * of the keyspaces, where what lies there may be old. */
void purging_open_other(struct purging *purging, struct redis *redis);
void purging_sweep_other(struct purging *purging);
/* It is the same data: a server that the first doubts the second doubts, too, before it is swept;
 * when that is done the first need not do it any more. */
void purging_doubt_other(struct purging *purging);
/* One key. Does nothing without a second cache. */
void purging_delete_other(struct purging *purging, struct key key);
/* No whole keyspace is to be deleted from it, and what sweeps found is deleted; nothing is owed. */
bool purging_other_is_swept(const struct purging *purging);
bool purging_owes_other(const struct purging *purging);
/* The two change places: what is asked and deleted by hand is the other one's from now on. */
void purging_swap(struct purging *purging);
void purging_give_up_other(struct purging *purging); /* the log is told of what is owed to it */
void purging_close_other(struct purging *purging); /* when its redis has ended; there may be none */

/* Of the cache that this leads to, which are to be told what struct redis_nodes tells; NULL: it is
 * neither of the two. */
struct purgers *purging_purgers_of(struct purging *purging, const struct redis *redis);

/* As a subscriber of changes.h, whose `arg` is the purging. */
void purging_hear(void *arg, const struct key_change *change);

/* A value of the key is about to be sent to the cache; `arg` is the purging (loads.h). */
void purging_filling(void *arg, struct key key);

/* What was filled is vouched for from now on, or never will be: who has no vouching is purged. */
void purging_give_unvouched(struct purging *purging);

/* Rows may have changed of which no log will tell; or only of this keyspace. */
void purging_missed(struct purging *purging);
void purging_missed_of(struct purging *purging, int keyspace);

/* For this reason what is cached may be old: it is deleted, and no server is believed before that
 * is done. */
void purging_doubt(struct purging *purging, const char *why);
bool purging_doubts(const struct purging *purging); /* of the cache that serves, some server */

/* What was cached of the keyspace is not what would be now. */
void purging_outdated(struct purging *purging, int keyspace);
void purging_outdated_all(struct purging *purging);

/* In force from now on, with no fewer keyspaces; the one before lives until this has returned.
 * Zeroed: does nothing. */
void purging_use_config(struct purging *purging, const struct config *config);

/* The database's answer to publication_values_sql(); see values.h. The other: there was one. */
void purging_learn_values(struct purging *purging, const char *answer);
bool purging_knows_values(const struct purging *purging);
void purging_check_time(struct purging *purging, uint64_t now); /* once in a while */

/* Asks the cache whether it has the key; deletes it there, behind any fill that was sent before,
 * and counts it when that is done. */
void purging_ask(struct purging *purging, struct key key, redis_answer_cb done, void *arg);
void purging_delete(struct purging *purging, struct key key, redis_answer_cb done, void *arg);

/* It is deleted once more, though nobody waits for that: a deletion of it has failed. */
void purging_owe(struct purging *purging, struct key key);

/* Some key is still to be deleted. */
bool purging_owes(const struct purging *purging);
void purging_give_up(struct purging *purging); /* it stays so: the log is told */

/* Adds the servers of the cache that serves, which report_finish() frees, and how much is still to
 * be purged. */
void purging_report(const struct purging *purging, struct report *report);

/* When redis has ended, so that nothing is in flight; the loop still has to run. Zeroed memory,
 * too. */
void purging_close(struct purging *purging);

#endif
