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
 * change of the publication waits to be confirmed itself, no probe can see it.
 */
#ifndef NESTGUARD_SYNC_H
#define NESTGUARD_SYNC_H

#include "build/builder.h"
#include "follow/checks/checker.h"
#include "follow/checks/fn_checks.h"
#include "follow/follower.h"
#include "follow/lag.h"
#include "follow/prober.h"

struct sync;

struct sync_events {
    /* Caught up, and the self-check has passed: the generation may take over. False: not now; asked
     * again when the log has been followed further. */
    bool (*ready)(void *arg, struct sync *sync);
    /* Everything that was committed by `known` (clock_ms()) is in the filters. */
    void (*known)(void *arg, struct sync *sync, uint64_t known);
    /* The generation must be replaced. `why` lives until the call returns. Only sync_close() may
     * follow. */
    void (*fault)(void *arg, struct sync *sync, const char *why);
};

struct sync_options {
    const struct config *config; /* what the generation was built for; outlives the sync */
    struct prober *prober;
    struct checker *checker;
    struct fn_checks *fn_checks;
    struct change_sink changes; /* is told of each change by the follower; see follower.h */
    const struct sync_events *events;
    void *arg;
};

/* Begins to follow with what was built, taking all of it; held, as by sync_hold(), until it is
 * known to everybody who looks keys up. 0, or a negative errno with *error. */
int sync_start(struct sync **out, uv_loop_t *loop, struct built *built,
               const struct sync_options *options, struct pg_error *error);

void sync_probed(struct sync *sync, const struct probe *probe);

/* Between these two no position is confirmed to the server: somebody must hear of a change before a
 * commit may return that waits for the guard. */
void sync_hold(struct sync *sync);
void sync_release(struct sync *sync);

struct generation *sync_generation(const struct sync *sync);
const struct lag *sync_lag(const struct sync *sync);
uint64_t sync_begin(const struct sync *sync); /* the log position that the snapshot ends at */
struct follower_counts sync_counts(const struct sync *sync);

/* No event comes any more. NULL is allowed. */
void sync_close(struct sync *sync);

#endif
