/* At most one builder is at work, for its filters need as much memory as those in force.
 *
 *   begin ─▶ builder ─┬─ built ──▶ complete() ─▶ with sync: poll, again after poll_interval
 *                     └─ failed ─▶ again after retry_ms, which doubles up to 10 s
 *
 * Whoever wants a generation meanwhile gets the next one: the snapshot of the one at work was
 * taken before the wish, and may miss what it is about.
 */
#include "renewal.h"

#include "clock.h"
#include "log.h"

enum { RETRY_MIN_MS = 500, RETRY_MAX_MS = 10000, REPORT_MS = 5000 };

/* A build that was asked for meanwhile does as well. */
static void on_timer(uv_timer_t *timer)
{
    struct renewal *renewal = timer->data;
    if (!renewal->builder)
        renewal_begin(renewal);
}

int renewal_init(struct renewal *renewal, uv_loop_t *loop, const struct renewal_options *options)
{
    renewal->loop = loop;
    renewal->options = *options;
    renewal->retry_ms = RETRY_MIN_MS;
    renewal->timer.data = renewal;
    return uv_timer_init(loop, &renewal->timer);
}

void renewal_reschedule(struct renewal *renewal)
{
    const struct config *config = renewal->options.config(renewal->options.arg)->config;
    uint64_t age = clock_ms() - renewal->polled;
    if (renewal->builder || config->sync != SYNC_POLL || !renewal->polled)
        return;
    uv_timer_start(&renewal->timer, on_timer,
                   age < config->poll_interval_ms ? config->poll_interval_ms - age : 0, 0);
}

static void start(struct renewal *renewal);

/* `complete` takes the generation, which may be gone when it returns: what the log says is read
 * before. */
static void succeeded(struct renewal *renewal, struct generation *generation)
{
    uint64_t rows = generation->rows, number = generation->number;
    double seconds = generation->build_seconds;
    size_t bytes = generation_bytes(generation);
    renewal->retry_ms = RETRY_MIN_MS;
    renewal->error[0] = '\0';
    renewal->options.complete(renewal->options.arg, generation);
    log_info("generation %llu: complete, %llu rows in %.1f s, %.1f MiB of filters",
             (unsigned long long)number, (unsigned long long)rows, seconds,
             (double)bytes / (1024 * 1024));
    renewal_reschedule(renewal);
}

/* The generation in force stays in force; guarding goes on with it. */
static void failed(struct renewal *renewal, const struct pg_error *error)
{
    snprintf(renewal->error, sizeof renewal->error, "%s", error->text);
    renewal->failures++;
    log_warning("generation %llu: %s; next try in %.1f s", (unsigned long long)renewal->newest,
                error->text, (double)renewal->retry_ms / 1000);
    uv_timer_start(&renewal->timer, on_timer, renewal->retry_ms, 0);
    renewal->retry_ms *= 2;
    if (renewal->retry_ms > RETRY_MAX_MS)
        renewal->retry_ms = RETRY_MAX_MS;
}

static void on_built(void *arg, struct generation *generation, const struct pg_error *error)
{
    struct renewal *renewal = arg;
    renewal->builder = NULL;
    shared_config_release(renewal->shared);
    renewal->shared = NULL;
    if (renewal->stopped) {
        generation_release(generation);
        return;
    }
    if (generation)
        succeeded(renewal, generation);
    else
        failed(renewal, error);
    if (renewal->wanted)
        start(renewal);
}

/* The builder reads the configuration from its own thread: it is held until that has ended. */
static void start(struct renewal *renewal)
{
    renewal->wanted = false;
    uv_timer_stop(&renewal->timer);
    renewal->shared = renewal->options.config(renewal->options.arg);
    renewal->shared->references++;
    renewal->polled = renewal->reported = clock_ms();
    renewal->builder =
        builder_start(renewal->loop, renewal->shared->config, ++renewal->newest, on_built, renewal);
    if (renewal->builder) {
        log_info("generation %llu: building", (unsigned long long)renewal->newest);
        return;
    }
    shared_config_release(renewal->shared);
    renewal->shared = NULL;
    failed(renewal, &(struct pg_error){.text = "no thread to build it on"});
}

uint64_t renewal_begin(struct renewal *renewal)
{
    if (renewal->builder) {
        renewal->wanted = true;
        return renewal->newest + 1;
    }
    start(renewal);
    return renewal->newest;
}

void renewal_report(struct renewal *renewal, uint64_t now)
{
    if (!renewal->builder || now - renewal->reported < REPORT_MS)
        return;
    renewal->reported = now;
    struct build_progress progress = builder_progress(renewal->builder);
    if (!progress.rows || progress.seconds <= 0) {
        log_info("generation %llu: building, the rows are being counted",
                 (unsigned long long)renewal->newest);
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
