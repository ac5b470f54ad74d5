/* The way to the rows: a pool of connections with its statements, the loads that workers ask for,
 * and what queries may not see yet.
 *
 *   a worker's request ─▶ loads ─▶ rows ─▶ pool ─▶ PostgreSQL
 *                           ├─▶ visibility ◀─ the log, probes
 *                           └─▶ the cache: fills
 *
 * Others ask for rows, too, by the members that they are shown: calls of the control port, checks.
 */
#ifndef NESTGUARD_LOADING_H
#define NESTGUARD_LOADING_H

#include "base/log/log_state.h"
#include "cache/loads.h"
#include "database/commit_visibility.h"
#include "database/rows.h"
#include "database/rows_statements.h"
#include "keeper/changes/changes.h"
#include "keeper/parts/report.h"
#include "postgres/pg_pool.h"

struct loading_options {
    uv_loop_t *loop;
    const struct config *config;    /* of the start */
    struct redis *redis;            /* to be filled */
    struct watch *watch;            /* where keys that are being loaded are watched */
    struct load_counters *counters; /* one for each keyspace */
    /* As in loads.h. */
    void (*filling)(void *arg, struct key key);
    bool (*is_expected)(void *arg, struct key key);
    void (*snapshot_wanted)(void *arg); /* as in commit_visibility.h */
    void *arg;
};

struct loading {
    struct rows rows;
    struct row_lane lane;              /* of its large ones */
    struct rows_statements statements; /* the pool's */
    struct pg_pool *pool;
    struct log_state pool_state;
    struct loads *loads;
    struct commit_visibility *visibility; /* empty where no log is followed */
    struct spellings *spellings;
};

/* The view is the first. 0, or a negative errno that the log has; then the process must end. */
int loading_open(struct loading *loading, const struct loading_options *options,
                 const struct view *view);

/* Decided by from now on; the one before lives until this has returned. Zeroed: does nothing. */
void loading_use_view(struct loading *loading, const struct view *view);

/* What is filled from now on. */
void loading_use_cache(struct loading *loading, struct redis *redis);

/* Its keyspaces were read again: their SQL may be another, and there may be more of them. Before a
 * view of it is used. */
void loading_use_keyspaces(struct loading *loading, const struct config *config);

/* As subscribers of changes.h, whose `arg` is the loading: queries may not see the change yet; what
 * is on its way, or remembered, of the key is old. */
void loading_unsee(void *arg, const struct key_change *change);
void loading_age(void *arg, const struct key_change *change);

/* Adds connections, loads under way, and each keyspace's latest other spelling and refused load:
 * for those that the report has by now (publishing_report()). */
void loading_report(const struct loading *loading, struct report *report);

/* Once in a while: the log may have been told of the pool not as it is now. */
void loading_tell_log(struct loading *loading, uint64_t now);

/* Every query ends; then, called once, `closed`: nothing is in flight any more. */
void loading_close(struct loading *loading, void (*closed)(void *arg), void *arg);
void loading_finish(struct loading *loading); /* behind that; zeroed memory, too */

#endif
