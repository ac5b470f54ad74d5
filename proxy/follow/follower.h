/* Follows the database's log for one generation: each committed change is applied to its filters
 * exactly once.
 *
 *   pg_stream ─▶ pgoutput ─▶ rows of keyspaces' tables ─▶ keys ─┬─▶ filters: insertions
 *                                                               ▼
 *                                             the record of their transaction (transaction.h)
 *                                                               │ its commit
 *                                                               ├─▶ changes: to the keeper
 *                                                               └─▶ follower_vouch(): removals
 *
 * The stream begins where the generation's snapshot ends, so nothing is missed and nothing counted
 * twice. The server sends small transactions when they are committed and large ones while they are
 * in progress, in blocks between which others come: then little of one is left to be told after its
 * commit. Insertions are in the filter before their commit, and taken out again, each once, if they
 * are rolled back. Everything else waits for the commit: what is rolled back is never told, and a
 * row that is deleted and inserted again is not absent in between. A key is taken out of the filter
 * when a probe has vouched for that; removals.h says why.
 *
 * The end of a large transaction is carried out in slices, so that the loop serves others, too;
 * meanwhile the stream waits.
 *
 * The follower is the only writer of its generation's filters. Whatever it cannot apply exactly is
 * a fault: the generation must be replaced. On the keeper's thread.
 */
#ifndef NESTGUARD_FOLLOWER_H
#define NESTGUARD_FOLLOWER_H

#include "guard/change.h"
#include "guard/view.h"
#include "postgres/log/pg_stream.h"

struct follower;

struct follower_events {
    /* Everything that was committed before `lsn` is applied. */
    void (*reached)(void *arg, uint64_t lsn);
    /* Removals wait for follower_vouch(); with `crowded` so does the stream. */
    void (*unvouched)(void *arg, bool crowded);
    /* The keyspace's filter cannot be kept exact any more; the others' can. True: it was given up
     * (generation_give_up()), and the rest is followed. False: that is the end. NULL: it always is.
     */
    bool (*gives_up)(void *arg, int keyspace, const char *why);
    /* The end: `why` lives until the call returns. Only follower_close() may follow. */
    void (*fault)(void *arg, const char *why);
};

struct follower_options {
    const struct config
        *config; /* whose keyspaces the generation was built for; outlives the follower */
    struct generation *generation; /* holds a reference */
    struct pg_stream *stream;      /* taken over */
    const uint32_t *tables;        /* those of config_followed(), by their oids; copied */
    const char *identities;        /* of those, as of the build: see publication.h; copied */
    /* Each change, when its transaction is committed. After CAUSE_TRUNCATED, and with CAUSE_LEFT,
     * the filter still holds the keys: a new generation is wanted. */
    struct change_sink changes;
    const struct follower_events *events;
    void *arg;
};

/* What has been followed, for status and for the choice between catching up and renewing. */
struct follower_counts {
    uint64_t transactions, changes;
    uint64_t last_commit_lsn;
    int64_t last_commit_us; /* microseconds since 2000-01-01 UTC; 0: none yet */
    size_t removals;        /* that wait for follower_vouch(), of all keyspaces */
};

/* Why a keyspace is given up when what it is followed by is not what it was at the build. */
extern const char follower_altered[];

/* Begins to follow. 0, or a negative errno with *error; then the stream is closed. */
int follower_start(struct follower **out, uv_loop_t *loop, const struct follower_options *options,
                   struct pg_error *error);

void follower_confirm(struct follower *follower, uint64_t lsn); /* to the server: applied */
void follower_ask(struct follower *follower); /* the server answers with reached() */
struct follower_counts follower_counts(const struct follower *follower);

/* The database has answered that all is as it was when the generation was built, under this
 * snapshot (its text): see removals.h. No event but unvouched() comes from within. */
void follower_vouch(struct follower *follower, const char *snapshot);
size_t follower_removals(const struct follower *follower, int keyspace); /* that wait */

/* No event comes any more; the memory goes by itself. NULL is allowed. */
void follower_close(struct follower *follower);

#endif
