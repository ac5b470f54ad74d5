/* A position of the log counts as known only when the probe that asked for it also found what the
 * stream reports unchanged (the fingerprint). Otherwise rows might have come that no event told of.
 */
#include "follow/sync.h"

#include "base/clock.h"
#include "base/memory.h"
#include "database/publication.h"
#include "follow/checks/checks.h"

#include <stdlib.h>

enum phase { CATCHING_UP, CHECKING, CHECKED, READY };

struct sync {
    struct follower *follower;
    struct generation *generation;
    char *fingerprint;
    struct sync_options options;
    struct sync_events events;
    struct lag lag;
    enum phase phase;
    struct checks *checks;
    uint64_t begin;
    unsigned holds;
    bool ended; /* fault() was called */
};

static void end(struct sync *sync, const char *why)
{
    if (sync->ended)
        return;
    sync->ended = true;
    sync->events.fault(sync->options.arg, sync, why);
}

/* ---- the self-check ---- */

/* Until whoever is served takes it. */
static void offer(struct sync *sync)
{
    if (sync->phase == CHECKED && sync->events.ready(sync->options.arg, sync))
        sync->phase = READY;
}

static void on_passed(void *arg)
{
    struct sync *sync = arg;
    sync->phase = CHECKED;
    offer(sync);
}

/* Once before the generation may serve, and again now and then. */
static void check_when_due(struct sync *sync)
{
    if (sync->phase == CHECKING || sync->phase == READY)
        checks_when_due(sync->checks);
}

/* ---- positions ---- */

/* Also when there is nothing new: where one standby lets commits go for all of its name (FIRST 1),
 * the server hears of another only when that says something after the first has ended. */
static void confirm(struct sync *sync)
{
    if (!sync->holds && sync->lag.position)
        follower_confirm(sync->follower, sync->lag.position);
}

static bool is_close(const struct sync *sync)
{
    return sync->lag.known && clock_ms() - sync->lag.known <= sync->options.config->max_lag_ms;
}

/* Comes last wherever it is called: what is told may end this sync. */
static void tell_known(struct sync *sync, uint64_t before)
{
    if (sync->lag.known == before)
        return;
    sync->events.known(sync->options.arg, sync, sync->lag.known);
    if (sync->phase == CATCHING_UP && is_close(sync))
        sync->phase = CHECKING;
    check_when_due(sync);
    fn_checks_known(sync->options.fn_checks, sync->generation, sync->lag.known);
}

static void on_reached(void *arg, uint64_t lsn)
{
    struct sync *sync = arg;
    uint64_t before = sync->lag.known;
    lag_reached(&sync->lag, lsn);
    confirm(sync);
    offer(sync);
    tell_known(sync, before);
}

void sync_probed(struct sync *sync, const struct probe *probe)
{
    uint64_t before = sync->lag.known;
    if (sync->ended)
        return;
    if (strcmp(probe->fingerprint, sync->fingerprint) != 0) {
        end(sync, strcmp(publication_server(probe->fingerprint),
                         publication_server(sync->fingerprint)) == 0
                      ? "a table, its publication or its partitions were altered"
                      : "the database is another server now, or was restarted");
        return;
    }
    lag_probed(&sync->lag, probe->time, probe->end);
    if (lag_bytes(&sync->lag))
        follower_ask(sync->follower);
    confirm(sync);
    tell_known(sync, before);
}

/* ---- life ---- */

static void on_fault(void *arg, const char *why)
{
    end(arg, why);
}

static struct checks *create_checks(struct sync *sync)
{
    return checks_create(&(struct checks_options){.checker = sync->options.checker,
                                                  .config = sync->options.config,
                                                  .fn_checks = sync->options.fn_checks,
                                                  .generation = sync->generation,
                                                  .passed = on_passed,
                                                  .failed = on_fault,
                                                  .arg = sync});
}

int sync_start(struct sync **out, uv_loop_t *loop, struct built *built,
               const struct sync_options *options, struct pg_error *error)
{
    static const struct follower_events events = {.reached = on_reached, .fault = on_fault};
    struct sync *sync = xcalloc(1, sizeof *sync);
    sync->generation = built->generation;
    sync->begin = pg_stream_consistent_point(built->stream);
    sync->fingerprint = built->fingerprint;
    sync->options = *options;
    sync->events = *options->events;
    sync->holds = 1;
    sync->checks = create_checks(sync);
    atomic_store_explicit(&sync->generation->lease, 0, memory_order_release);
    struct follower_options follow = {.config = options->config,
                                      .generation = built->generation,
                                      .stream = built->stream,
                                      .tables = built->tables,
                                      .changes = options->changes,
                                      .events = &events,
                                      .arg = sync};
    built->generation = NULL;
    built->fingerprint = NULL;
    built->stream = NULL;
    int status = follower_start(&sync->follower, loop, &follow, error);
    if (status) {
        sync_close(sync);
        return status;
    }
    prober_now(options->prober);
    *out = sync;
    return 0;
}

void sync_hold(struct sync *sync)
{
    sync->holds++;
}

void sync_release(struct sync *sync)
{
    sync->holds--;
    confirm(sync);
}

struct generation *sync_generation(const struct sync *sync)
{
    return sync->generation;
}

uint64_t sync_begin(const struct sync *sync)
{
    return sync->begin;
}

const struct lag *sync_lag(const struct sync *sync)
{
    return &sync->lag;
}

struct follower_counts sync_counts(const struct sync *sync)
{
    return follower_counts(sync->follower);
}

void sync_close(struct sync *sync)
{
    if (!sync)
        return;
    checks_close(sync->checks);
    follower_close(sync->follower);
    fn_checks_forget(sync->options.fn_checks, sync->generation);
    generation_release(sync->generation);
    free(sync->fingerprint);
    free(sync);
}
