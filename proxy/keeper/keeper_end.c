/* The end goes from the outside in, each step begun by the one before it:
 *
 *   signal ─▶ workers drain ─▶ control port ─▶ log ─▶ database ─▶ purges ─▶ cache
 *
 * and the loop has nothing left.
 *
 * The log is followed until it has told all that was committed when the signal came, and the cache
 * is kept until every key that it told of is deleted there: whoever starts next was not told of
 * them. Both take no time while all is well. What they wait for, a database or a cache that does
 * not answer, they wait for as long as clients may, and the log says what is left undone.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "postgres/pg_pool.h"
#include "redis/redis.h"

enum {
    TICK_MS = 10,      /* from one look at what is waited for to the next */
    AT_LEAST_MS = 1000 /* for each, where what came before took all the time there was */
};

static uint64_t later(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

static bool is_late(const struct keeper *keeper)
{
    return clock_ms() >= later(keeper->drain_since + keeper_config(keeper)->drain_timeout_ms,
                               keeper->step_since + AT_LEAST_MS);
}

static void await(struct keeper *keeper, void (*what)(uv_timer_t *tick))
{
    keeper->step_since = clock_ms();
    uv_timer_start(&keeper->tick, what, 0, TICK_MS);
}

/* ---- the cache ---- */

static void caches_ended(struct keeper *keeper)
{
    purging_close(&keeper->purging);
    publisher_destroy(keeper->publisher);
    keeper->publisher = NULL;
}

static void close_handles(struct keeper *keeper)
{
    uv_close((uv_handle_t *)&keeper->tick, NULL);
    expiry_close(&keeper->expiry);
    uv_close((uv_handle_t *)&keeper->on_term, NULL);
    uv_close((uv_handle_t *)&keeper->on_int, NULL);
    uv_close((uv_handle_t *)&keeper->on_hup, NULL);
    keeper_close_succession(keeper);
    mailbox_close(&keeper->mailbox);
}

static void end_cache(struct keeper *keeper)
{
    close_handles(keeper);
    keeper_end_cache(keeper, caches_ended);
}

static void wait_for_purges(uv_timer_t *tick)
{
    struct keeper *keeper = tick->data;
    if (purging_owes(&keeper->purging)) {
        if (!is_late(keeper))
            return;
        purging_give_up(&keeper->purging);
    } else {
        keeper_tell_purged(keeper);
    }
    end_cache(keeper);
}

static void pool_ended(void *arg)
{
    await(arg, wait_for_purges);
}

/* ---- the log ---- */

static void checker_ended(void *arg)
{
    struct keeper *keeper = arg;
    loading_close(&keeper->loading, pool_ended, keeper);
}

static void tracker_ended(void *arg)
{
    struct keeper *keeper = arg;
    standings_close(&keeper->standings);
    checking_close(&keeper->checking, checker_ended, keeper);
}

static void wait_for_log(uv_timer_t *tick)
{
    struct keeper *keeper = tick->data;
    if (!replication_has_followed(&keeper->replication, keeper->drain_since) && !is_late(keeper))
        return;
    uv_timer_stop(tick);
    replication_close(&keeper->replication, keeper->drain_since, tracker_ended, keeper);
}

static void http_ended(void *arg)
{
    struct keeper *keeper = arg;
    replication_probe(&keeper->replication);
    await(keeper, wait_for_log);
}

void keeper_end(struct keeper *keeper)
{
    keeper_end_reloading(keeper);
    renewal_stop(&keeper->renewal);
    sources_end(&keeper->sources);
    pushes_end(&keeper->pushes);
    purging_give_unvouched(&keeper->purging); /* nobody else knows of them */
    keeper_settle_cache(keeper);
    uv_timer_stop(&keeper->tick);
    succession_fall_silent(&keeper->succession);
    if (keeper->http)
        http_server_close(keeper->http, http_ended, keeper);
    else
        http_ended(keeper);
}
