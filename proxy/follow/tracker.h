/* What keeps one generation in step with the database: its follower, how far behind it is, and the
 * checks that it is right.
 *
 *   built ─▶ catching up ─▶ self-check ─▶ ready() ─▶ known(), known(), ... ─▶ fault()
 *
 * A generation that serves and one that is to replace it are two of these, side by side.
 *
 * What the stream has told is confirmed to the server at once, before the next probe vouches that
 * it told all: a row that is inserted just after its table was taken out of the publication may be
 * rejected until that probe, though its commit waited for the guard. To wait for the probe would
 * make commits ten times as slow, those of all tables, and would not close the gap: while the
 * change of the publication waits to be confirmed itself, no probe can see it. Removals, which no
 * commit waits for, do wait for the probe (removals.h): a row that was there is not rejected
 * because of what the log left out.
 */
#ifndef NESTGUARD_TRACKER_H
#define NESTGUARD_TRACKER_H

#include "build/builder.h"
#include "follow/checks/checker.h"
#include "follow/checks/fn_checks.h"
#include "follow/follower.h"
#include "follow/lag.h"
#include "follow/wal_probe.h"

struct tracker;

struct tracker_events {
    /* Caught up, and the self-check has passed: the generation may take over. False: not now; asked
     * again when the log has been followed further. */
    bool (*ready)(void *arg, struct tracker *tracker);
    /* Everything that was committed by `known` (clock_ms()) is in the filters. */
    void (*known)(void *arg, struct tracker *tracker, uint64_t known);
    /* As gives_up() of follower.h. */
    bool (*gives_up)(void *arg, struct tracker *tracker, int keyspace, const char *why);
    /* The log is followed up to here, which may have been told before. May be NULL. */
    void (*reached)(void *arg, struct tracker *tracker, uint64_t position);
    /* The generation must be replaced. `why` lives until the call returns. Only tracker_close() may
     * follow. */
    void (*fault)(void *arg, struct tracker *tracker, const char *why);
};

struct tracker_options {
    const struct config *config; /* what the generation was built for; outlives the sync */
    struct wal_probe *wal_probe;
    struct checker *checker;
    struct fn_checks *fn_checks;
    const uint64_t *limit;      /* no later position is confirmed; NULL: none */
    struct change_sink changes; /* is told of each change by the follower; see follower.h */
    const struct tracker_events *events;
    void *arg;
};

/* Begins to follow with what was built, taking all of it; held, as by tracker_hold(), until it is
 * known to everybody who looks keys up. 0, or a negative errno with *error. */
int tracker_start(struct tracker **out, uv_loop_t *loop, struct built *built,
                  const struct tracker_options *options, struct pg_error *error);

void tracker_probed(struct tracker *tracker, const struct probe *probe);

/* Confirms once more: the limit has changed. */
void tracker_confirm(struct tracker *tracker);

/* Between these two no position is confirmed to the server: somebody must hear of a change before a
 * commit may return that waits for the guard. */
void tracker_hold(struct tracker *tracker);
void tracker_release(struct tracker *tracker);

struct generation *tracker_generation(const struct tracker *tracker);
const struct lag *tracker_lag(const struct tracker *tracker);
uint64_t
tracker_begin(const struct tracker *tracker); /* the log position that the snapshot ends at */
struct follower_counts tracker_counts(const struct tracker *tracker);

/* Keys of the keyspace that will leave the filter with one of the next probes. */
size_t tracker_removals(const struct tracker *tracker, int keyspace);

/* No event comes any more. NULL is allowed. */
void tracker_close(struct tracker *tracker);

#endif
