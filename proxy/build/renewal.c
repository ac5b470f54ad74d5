/* At most one builder is at work, for its filters need as much memory as those in force.
 *
 *   begin ─▶ announce ─▶ builder ─┬─ built ──▶ complete() ─▶ in force; with sync: poll, again after
 *                                 │                          poll_interval
 *                                 └─ failed ─▶ again after a wait that doubles up to 10 s
 *
 * The workers must know before the snapshot is taken: a key that is written from then on may be
 * missing in it.
 *
 * Whoever wants a generation meanwhile gets the next one: the snapshot of the one at work was
 * taken before the wish, and may miss what it is about.
 */
#include "build/renewal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/text/byte_unit.h"

#include <assert.h>

static const struct backoff_bounds retry_bounds = {500, 10000};

enum {
    REPORT_MS = 5000,
    LASTING_MS = 30000,
    COMPLAIN_MS = 60000,
    REST_MS = 1000, /* and REST times as long as the build took */
    REST = 10
};

static void start(struct renewal *renewal, bool for_itself);

/* A build that was asked for meanwhile does as well. */
static void on_poll(uv_timer_t *timer)
{
    struct renewal *renewal = timer->data;
    if (renewal->phase == RENEWAL_IDLE)
        start(renewal, true);
}

/* While a keyspace cannot be had, tries take the timer's place. */
static bool poll_is_due(const struct renewal *renewal)
{
    const struct config *config = renewal->options.config(renewal->options.arg)->config;
    return config->sync == SYNC_POLL && clock_ms() - renewal->polled >= config->poll_interval_ms;
}

/* For what the last one was for. */
static void on_retry(uv_timer_t *timer)
{
    struct renewal *renewal = timer->data;
    if (renewal->phase == RENEWAL_IDLE)
        start(renewal, renewal->for_itself || poll_is_due(renewal));
}

int renewal_init(struct renewal *renewal, uv_loop_t *loop, const struct renewal_options *options)
{
    renewal->loop = loop;
    renewal->options = *options;
    renewal->hurried = true;
    renewal->timer.data = renewal;
    return uv_timer_init(loop, &renewal->timer);
}

void renewal_reschedule(struct renewal *renewal)
{
    const struct config *config = renewal->options.config(renewal->options.arg)->config;
    uint64_t age = clock_ms() - renewal->polled;
    if (renewal->phase != RENEWAL_IDLE || config->sync != SYNC_POLL || !renewal->polled ||
        renewal->retrying)
        return;
    uv_timer_start(&renewal->timer, on_poll,
                   age < config->poll_interval_ms ? config->poll_interval_ms - age : 0, 0);
}

/* For each phase, the phases that may follow it, a bit each. */
static void set_phase(struct renewal *renewal, enum renewal_phase phase)
{
    static const unsigned allowed[] = {
        [RENEWAL_IDLE] = 1u << RENEWAL_ANNOUNCING,
        [RENEWAL_ANNOUNCING] = 1u << RENEWAL_BUILDING,
        [RENEWAL_BUILDING] = 1u << RENEWAL_SETTLING | 1u << RENEWAL_IDLE,
        [RENEWAL_SETTLING] = 1u << RENEWAL_IDLE,
    };
    assert(allowed[renewal->phase] & 1u << phase);
    (void)allowed;
    renewal->phase = phase;
}

/* ---- the end of a build ---- */

/* Another may have been asked for meanwhile. */
static void become_idle(struct renewal *renewal)
{
    set_phase(renewal, RENEWAL_IDLE);
    if (renewal->stopped)
        return;
    renewal->options.idle(renewal->options.arg);
    if (renewal->wanted)
        start(renewal, true);
}

/* In how many ms it will. */
static uint64_t try_later(struct renewal *renewal)
{
    uint64_t wait = backoff_next(&renewal->retry, &retry_bounds);
    renewal->retrying = true;
    uv_timer_start(&renewal->timer, on_retry, wait, 0);
    return wait;
}

static void forget_trouble(struct renewal *renewal)
{
    renewal->error[0] = '\0';
    renewal->failing = false;
}

static void succeed(struct renewal *renewal)
{
    forget_trouble(renewal);
    renewal->in_force = clock_ms();
    renewal->polled = renewal->began;
    renewal->for_itself = false;
    if (!renewal->shaky)
        backoff_reset(&renewal->retry);
    renewal->shaky = false;
    become_idle(renewal);
    renewal_reschedule(renewal);
}

/* The same trouble is told of once a minute, however often it is met. */
static void complain(struct renewal *renewal, const char *error, uint64_t wait)
{
    uint64_t now = clock_ms();
    bool is_told = strncmp(renewal->error, error, sizeof renewal->error - 1) == 0;
    if (is_told && now - renewal->complained < COMPLAIN_MS)
        return;
    renewal->complained = now;
    log_warning("generation %llu: %s; next try in %.1f s", (unsigned long long)renewal->newest,
                error, (double)wait / 1000);
}

/* The generation in force stays in force; guarding goes on with it. */
static void fail(struct renewal *renewal, const char *error)
{
    renewal->failures++;
    renewal->failing = true;
    complain(renewal, error, try_later(renewal));
    snprintf(renewal->error, sizeof renewal->error, "%s", error);
    become_idle(renewal);
}

void renewal_settle(struct renewal *renewal, const char *error)
{
    if (error)
        fail(renewal, error);
    else
        succeed(renewal);
}

void renewal_replace(struct renewal *renewal, const char *why)
{
    snprintf(renewal->error, sizeof renewal->error, "%s", why);
    if (renewal->phase != RENEWAL_IDLE)
        return; /* the one under way has a snapshot and a stream of its own */
    if (clock_ms() - renewal->in_force > LASTING_MS) {
        backoff_reset(&renewal->retry);
        start(renewal, renewal->for_itself);
    } else {
        renewal->shaky = true; /* the backoff goes on although its building succeeds */
        try_later(renewal);
    }
}

/* `complete` takes what was built: what the log says is read before. */
static void hand_over(struct renewal *renewal, struct built *built)
{
    const struct generation *generation = built->generation;
    const char *unit;
    double size = byte_unit((double)generation_bytes(generation), &unit);
    log_info("generation %llu: built, %llu rows in %.1f s, %.1f %s of filters",
             (unsigned long long)generation->number, (unsigned long long)generation->rows,
             generation->build_seconds, size, unit);
    set_phase(renewal, RENEWAL_SETTLING);
    renewal->options.complete(renewal->options.arg, built);
}

static void tell_lacks(const struct renewal *renewal, const struct built *built)
{
    for (size_t i = 0; i < built->keyspaces; i++)
        if (built->faults[i])
            renewal->options.lacks(renewal->options.arg, i, built->faults[i]);
}

static void on_built(void *arg, struct built *built, const struct pg_error *error)
{
    struct renewal *renewal = arg;
    struct shared_config *shared = renewal->shared;
    renewal->builder = NULL;
    renewal->shared = NULL;
    if (!error) {
        built->config = shared;
        generation_built_for(built->generation, shared);
    } else {
        shared_config_release(shared);
    }
    if (renewal->stopped)
        return;
    tell_lacks(renewal, built);
    if (!error)
        hand_over(renewal, built);
    else
        fail(renewal, error->text);
}

/* ---- its beginning ---- */

/* Where no keyspace has rows, there is nothing to build. */
static void start(struct renewal *renewal, bool for_itself)
{
    renewal->wanted = renewal->retrying = false;
    uv_timer_stop(&renewal->timer);
    if (!config_has_rows(renewal->options.config(renewal->options.arg)->config)) {
        forget_trouble(renewal);
        return;
    }
    renewal->for_itself = for_itself;
    renewal->newest++;
    set_phase(renewal, RENEWAL_ANNOUNCING);
    renewal->options.announce(renewal->options.arg);
}

/* What guards now is asked at the last moment: a build goes by it to the end. */
static struct builder *start_builder(struct renewal *renewal)
{
    const struct config *config = renewal->shared->config;
    uint64_t *replaced = xcalloc(KEYSPACES_MAX, sizeof *replaced);
    const struct generation *in_force = renewal->options.in_force(renewal->options.arg);
    for (size_t i = 0; in_force && i < in_force->count; i++)
        replaced[i] = generation_rows(in_force, i);
    bool *guarded = xcalloc(KEYSPACES_MAX, sizeof *guarded);
    for (size_t i = 0; i < config->keyspace_count; i++)
        guarded[i] = renewal->options.guards(renewal->options.arg, i);
    struct builder_options options = {.config = config,
                                      .number = renewal->newest,
                                      .hurried = renewal->hurried,
                                      .wanted = renewal->for_itself,
                                      .beside = renewal->options.beside,
                                      .replaced = replaced,
                                      .guarded = guarded,
                                      .done = on_built,
                                      .arg = renewal};
    return builder_start(renewal->loop, &options);
}

/* The builder reads the configuration from its own thread: it is held until that has ended. */
void renewal_announced(struct renewal *renewal)
{
    if (renewal->phase != RENEWAL_ANNOUNCING || renewal->stopped)
        return;
    set_phase(renewal, RENEWAL_BUILDING);
    renewal->shared = renewal->options.config(renewal->options.arg);
    renewal->shared->references++;
    renewal->began = renewal->reported = clock_ms();
    if (renewal->for_itself)
        renewal->polled = renewal->began;
    renewal->builder = start_builder(renewal);
    if (renewal->builder) {
        log_info("generation %llu: building%s", (unsigned long long)renewal->newest,
                 renewal->hurried ? "" : " without haste, beside the one that guards");
        return;
    }
    shared_config_release(renewal->shared);
    renewal->shared = NULL;
    fail(renewal, "no thread to build it on");
}

uint64_t renewal_begin(struct renewal *renewal)
{
    if (renewal->phase != RENEWAL_IDLE) {
        renewal->wanted = true;
        return renewal->newest + 1;
    }
    start(renewal, true);
    return renewal->newest;
}

bool renewal_takes_wishes(const struct renewal *renewal)
{
    return renewal->phase == RENEWAL_IDLE && !(renewal->retrying && renewal->for_itself);
}

bool renewal_has_rested(const struct renewal *renewal, uint64_t now)
{
    const struct generation *generation = renewal->options.in_force(renewal->options.arg);
    double took_ms = generation ? 1000 * generation->build_seconds : 0;
    return (double)(now - renewal->in_force) >= REST_MS + REST * took_ms;
}

void renewal_wish(struct renewal *renewal)
{
    if (!renewal_takes_wishes(renewal))
        return;
    if (renewal->retrying)
        renewal->for_itself = true;
    else
        start(renewal, true);
}

void renewal_hurry(struct renewal *renewal, bool hurried)
{
    if (renewal->hurried == hurried)
        return;
    renewal->hurried = hurried;
    if (renewal->builder)
        builder_hurry(renewal->builder, hurried);
}

void renewal_tell_log(struct renewal *renewal, uint64_t now)
{
    if (!renewal->builder || now - renewal->reported < REPORT_MS)
        return;
    renewal->reported = now;
    struct build_progress progress = builder_progress(renewal->builder);
    if (!progress.rows || progress.seconds <= 0) {
        log_info("generation %llu: building, %s%s%s", (unsigned long long)renewal->newest,
                 build_phase_text(progress.phase), progress.waits[0] ? "; it waits " : "",
                 progress.waits);
        return;
    }
    double rate = (double)progress.rows / progress.seconds;
    log_info("generation %llu: building, %llu of %llu rows, %.0f a second, about %.0f s to go",
             (unsigned long long)renewal->newest, (unsigned long long)progress.rows,
             (unsigned long long)progress.rows_total, rate,
             (double)(progress.rows_total - progress.rows) / rate);
}

void renewal_stop(struct renewal *renewal)
{
    renewal->stopped = true;
    renewal->wanted = false;
    if (renewal->builder)
        builder_stop(renewal->builder);
    uv_close((uv_handle_t *)&renewal->timer, NULL);
}

struct build_report renewal_report(const struct renewal *renewal)
{
    struct build_report report = {.at_work = renewal->builder != NULL,
                                  .newest = renewal->newest,
                                  .error = renewal->error,
                                  .failing = renewal->failing,
                                  .failures = renewal->failures};
    if (renewal->builder)
        report.progress = builder_progress(renewal->builder);
    return report;
}
