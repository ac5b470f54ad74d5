/* How the guard leaves:
 *
 *   SIGTERM, SIGINT ─▶ drain_delay: all goes on, but /readyz ─┐
 *                                                             ├▶ draining ─▶ keeper_end()
 *   a successor ─▶ its clients leave by themselves, or after ─┘
 *                  drain_timeout
 *
 * A load balancer has time to see that /readyz has changed, and sends nobody to a port that is
 * closed.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/service.h"

#include <stdlib.h>

static void drain(struct keeper *keeper)
{
    keeper->leaving.begun = keeper->draining = true;
    entries_end(&keeper->entries);
    replication_end(&keeper->replication);
    standings_end(&keeper->standings);
    server_watch_end(&keeper->server);
    publisher_end(keeper->publisher);
    keeper->drain_since = clock_ms();
    keeper_tell_workers(keeper, MESSAGE_DRAIN);
    succession_end(&keeper->succession);
}

void keeper_leave(struct keeper *keeper, uint64_t after_ms, bool early)
{
    keeper->leaving.begun = true;
    keeper->leaving.early = early;
    keeper->leaving.at = clock_ms() + after_ms;
    keeper_watch_leaving(keeper, clock_ms());
}

void keeper_watch_leaving(struct keeper *keeper, uint64_t now)
{
    const struct leaving *leaving = &keeper->leaving;
    if (!leaving->begun || keeper->draining)
        return;
    if (now >= leaving->at || (leaving->early && !leaving->letting_in && !keeper->client_total))
        drain(keeper);
}

/* One that has a successor does not wait for its clients any more. */
static void on_end_signal(uv_signal_t *signal, int number)
{
    struct keeper *keeper = signal->data;
    const struct config *config = keeper_config(keeper);
    const char *name = number == SIGINT ? "SIGINT" : "SIGTERM";
    if (keeper->draining || (keeper->leaving.begun && !keeper->leaving.early)) {
        log_warning("second %s: ending at once", name);
        _Exit(1);
    }
    log_info("%s: finishing what is under way, %.1f s at most", name,
             (double)(config->drain_delay_ms + config->drain_timeout_ms) / 1000);
    service_stopping();
    keeper_leave(keeper, keeper->leaving.early ? 0 : config->drain_delay_ms, false);
}

static void init_signal(struct keeper *keeper, uv_signal_t *signal, int number)
{
    uv_signal_init(&keeper->loop, signal);
    signal->data = keeper;
    uv_signal_start(signal, on_end_signal, number);
}

void keeper_open_leaving(struct keeper *keeper)
{
    init_signal(keeper, &keeper->on_term, SIGTERM);
    init_signal(keeper, &keeper->on_int, SIGINT);
}
