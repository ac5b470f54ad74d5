/* A position of the log counts as known only when the probe that asked for it also found what the
 * stream reports unchanged (the fingerprint). Otherwise rows might have come that no event told of.
 */
#include "follow/tracker.h"

#include "base/clock.h"
#include "base/memory.h"
#include "database/publication.h"
#include "follow/checks/checks.h"

#include <stdlib.h>

/*   CATCHING_UP ─ within max_lag ─▶ CHECKING ─ self-check passed ─▶ CHECKED ─ taken ─▶ READY
 *
 * The last is for good: one that falls behind rejects nothing by its lease's end, and goes on. */
enum phase { CATCHING_UP, CHECKING, CHECKED, READY };

struct tracker {
    struct follower *follower;
    struct shared_config *config; /* held; NULL: the owner of the options' does */
    struct generation *generation;
    char *fingerprint; /* what the stream was told to report, as of the build */
    struct tracker_options options;
    struct tracker_events events;
    struct lag lag;
    enum phase phase;
    struct checks *checks;
    uint64_t begin; /* position of the log: changes from here on are told of */
    unsigned holds; /* while there are any, no position is confirmed */
    bool crowded;   /* the stream waits for a probe that lets removals go */
    bool ended;     /* fault() was called */
};

/* Once; from here on nothing is told any more. The owner closes it. */
static void end(struct tracker *tracker, const char *why)
{
    if (tracker->ended)
        return;
    tracker->ended = true;
    tracker->events.fault(tracker->options.arg, tracker, why);
}

/* ---- the self-check ---- */

/* Until whoever is served takes it: with each position, and with each probe, since an idle server
 * tells of no position. */
static void offer(struct tracker *tracker)
{
    if (tracker->phase == CHECKED && tracker->events.ready(tracker->options.arg, tracker))
        tracker->phase = READY;
}

static void on_passed(void *arg)
{
    struct tracker *tracker = arg;
    tracker->phase = CHECKED;
    offer(tracker);
}

/* Once before the generation may serve, and again now and then. */
static void check_when_due(struct tracker *tracker)
{
    if (tracker->phase == CHECKING || tracker->phase == READY)
        checks_when_due(tracker->checks);
}

/* ---- positions ---- */

/* Nothing behind it is confirmed: another process does not know more. */
static uint64_t limit_of(const struct tracker *tracker)
{
    return tracker->options.limit ? *tracker->options.limit : UINT64_MAX;
}

/* Also when there is nothing new: where one standby lets commits go for all of its name (FIRST 1),
 * the server hears of another only when that says something after the first has ended. */
static void confirm(struct tracker *tracker)
{
    uint64_t position = tracker->lag.position, limit = limit_of(tracker);
    if (!tracker->holds && position)
        follower_confirm(tracker->follower, position < limit ? position : limit);
    if (tracker->events.reached)
        tracker->events.reached(tracker->options.arg, tracker, position);
}

void tracker_confirm(struct tracker *tracker)
{
    if (!tracker->ended)
        confirm(tracker);
}

/* As close behind the database as whoever rejects must be. */
static bool is_close(const struct tracker *tracker)
{
    return tracker->lag.known &&
           clock_ms() - tracker->lag.known <= tracker->options.config->max_lag_ms;
}

/* Comes last wherever it is called: what is told may end this sync. */
static void tell_known(struct tracker *tracker, uint64_t before)
{
    if (tracker->lag.known == before)
        return;
    tracker->events.known(tracker->options.arg, tracker, tracker->lag.known);
    if (tracker->phase == CATCHING_UP && is_close(tracker))
        tracker->phase = CHECKING;
    check_when_due(tracker);
    fn_checks_known(tracker->options.fn_checks, tracker->generation, tracker->lag.known);
}

static void on_reached(void *arg, uint64_t lsn)
{
    struct tracker *tracker = arg;
    uint64_t before = tracker->lag.known;
    tracker->crowded = false; /* the stream goes on: the next crowd is another */
    lag_reached(&tracker->lag, lsn);
    confirm(tracker);
    offer(tracker);
    tell_known(tracker, before);
}

/* Removals wait for the next probe; with `crowded` the stream does so, too, and it comes at once.
 * If it lets none go they are of a transaction that is not over, which may take long. That the last
 * has gone nobody says: but the stream tells of no position while it waits. */
static void on_unvouched(void *arg, bool crowded)
{
    struct tracker *tracker = arg;
    bool is_first = crowded && !tracker->crowded;
    tracker->crowded = crowded;
    if (is_first)
        wal_probe_now(tracker->options.wal_probe);
    else
        wal_probe_soon(tracker->options.wal_probe);
}

static bool gives_up(void *arg, int keyspace, const char *why)
{
    struct tracker *tracker = arg;
    return tracker->events.gives_up &&
           tracker->events.gives_up(tracker->options.arg, tracker, keyspace, why);
}

/* Of what the generation covers and the publication tells otherwise now, each keyspace is given up;
 * false: one could not be without the others, or nothing is left. */
static bool keeps_to(struct tracker *tracker, const char *fingerprint, const char *why)
{
    bool is_left = false;
    for (size_t i = 0; i < tracker->generation->count; i++) {
        if (!generation_covers(tracker->generation, i))
            continue;
        bool agrees = publication_agrees(fingerprint, tracker->fingerprint, i);
        if (!agrees && !gives_up(tracker, (int)i, why))
            return false;
        is_left |= agrees;
    }
    return is_left;
}

static bool on_check_failed(void *arg, size_t keyspace, const char *why)
{
    bool goes_on = gives_up(arg, (int)keyspace, why);
    if (!goes_on)
        end(arg, why);
    return goes_on;
}

/* What is wrong with the whole of it; or NULL. */
static const char *judge(struct tracker *tracker, const char *fingerprint)
{
    if (strcmp(fingerprint, tracker->fingerprint) == 0)
        return NULL;
    if (strcmp(publication_server(fingerprint), publication_server(tracker->fingerprint)) != 0)
        return "the database is another server now, or was restarted";
    return keeps_to(tracker, fingerprint, follower_altered) ? NULL : follower_altered;
}

/* The order matters: what the stream reports must be unchanged before the position counts, and the
 * position must count before anybody is told of it. */
void tracker_probed(struct tracker *tracker, const struct probe *probe)
{
    uint64_t before = tracker->lag.known;
    if (tracker->ended)
        return;
    const char *why = judge(tracker, probe->fingerprint);
    if (why) {
        end(tracker, why);
        return;
    }
    lag_probed(&tracker->lag, probe->time, probe->end);
    if (lag_bytes(&tracker->lag))
        follower_ask(tracker->follower);
    confirm(tracker);
    follower_vouch(tracker->follower, probe->snapshot);
    offer(tracker);
    tell_known(tracker, before);
}

/* ---- life ---- */

static void on_fault(void *arg, const char *why)
{
    end(arg, why);
}

static struct checks *create_checks(struct tracker *tracker)
{
    return checks_create(&(struct checks_options){.checker = tracker->options.checker,
                                                  .config = tracker->options.config,
                                                  .fn_checks = tracker->options.fn_checks,
                                                  .generation = tracker->generation,
                                                  .passed = on_passed,
                                                  .failed = on_check_failed,
                                                  .arg = tracker});
}

int tracker_start(struct tracker **out, uv_loop_t *loop, struct built *built,
                  const struct tracker_options *options, struct pg_error *error)
{
    static const struct follower_events events = {
        .reached = on_reached, .unvouched = on_unvouched, .gives_up = gives_up, .fault = on_fault};
    struct tracker *tracker = xcalloc(1, sizeof *tracker);
    tracker->config = built->config;
    tracker->generation = built->generation;
    tracker->begin = pg_stream_consistent_point(built->stream);
    tracker->fingerprint = built->fingerprint;
    tracker->options = *options;
    tracker->events = *options->events;
    tracker->holds = 1;
    tracker->checks = create_checks(tracker);
    atomic_store_explicit(&tracker->generation->lease, 0, memory_order_release);
    struct follower_options follow = {.config = options->config,
                                      .generation = built->generation,
                                      .stream = built->stream,
                                      .tables = built->tables,
                                      .identities = built->identities,
                                      .changes = options->changes,
                                      .events = &events,
                                      .arg = tracker};
    built->config = NULL;
    built->generation = NULL;
    built->fingerprint = NULL;
    built->stream = NULL;
    int status = follower_start(&tracker->follower, loop, &follow, error);
    if (status) {
        tracker_close(tracker);
        return status;
    }
    wal_probe_now(options->wal_probe);
    *out = tracker;
    return 0;
}

void tracker_hold(struct tracker *tracker)
{
    tracker->holds++;
}

void tracker_release(struct tracker *tracker)
{
    tracker->holds--;
    confirm(tracker);
}

struct generation *tracker_generation(const struct tracker *tracker)
{
    return tracker->generation;
}

uint64_t tracker_begin(const struct tracker *tracker)
{
    return tracker->begin;
}

const struct lag *tracker_lag(const struct tracker *tracker)
{
    return &tracker->lag;
}

struct follower_counts tracker_counts(const struct tracker *tracker)
{
    return follower_counts(tracker->follower);
}

size_t tracker_removals(const struct tracker *tracker, int keyspace)
{
    return follower_removals(tracker->follower, keyspace);
}

void tracker_close(struct tracker *tracker)
{
    if (!tracker)
        return;
    checks_close(tracker->checks);
    follower_close(tracker->follower);
    fn_checks_forget(tracker->options.fn_checks, tracker->generation);
    generation_release(tracker->generation);
    shared_config_release(tracker->config);
    free(tracker->fingerprint);
    free(tracker);
}
