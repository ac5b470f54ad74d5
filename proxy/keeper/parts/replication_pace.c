/* When the generation that serves is replaced though nothing is wrong with it: its filters grow
 * full, or it falls behind and another would be there sooner than it catches up. */
#include "keeper/parts/replication.h"

#include "base/clock.h"
#include "base/log/log.h"

enum {
    PACE_MS = 1000,
    RENEWAL_OVERHEAD_SECONDS = 1,
    /* Shares of a filter's places: with so few of them free another is built; and in a hurry. */
    NEARLY_FULL = 128,
    ALMOST_FULL = 256
};

static const struct generation *generation_served(const struct replication *replication)
{
    return tracker_generation(replication->serving);
}

static double seconds_to_catch_up(const struct replication *replication)
{
    double rate = replication->pace.bytes_per_second;
    double bytes = (double)lag_bytes(tracker_lag(replication->serving));
    return rate > 1 ? bytes / rate : bytes;
}

/* Reading the log costs much more for each change than COPY for each row. Judged by this guard's
 * own pace and by what the last building took; while nothing may be rejected, none rests. */
static void renew_when_quicker(struct replication *replication)
{
    double catch_up = seconds_to_catch_up(replication);
    const struct generation *last = generation_served(replication);
    double renew = last->build_seconds - last->rested_seconds + RENEWAL_OVERHEAD_SECONDS;
    if (replication->pace.renewing || catch_up < 2 * renew)
        return;
    replication->pace.renewing = true;
    log_info("%llu bytes of log behind, %.0f s to catch up at %.0f bytes/s; a new generation takes "
             "about %.0f s and is begun",
             (unsigned long long)lag_bytes(tracker_lag(replication->serving)), catch_up,
             replication->pace.bytes_per_second, renew);
    replication->options.events->wanted(replication->options.arg);
}

static void watch_pace(struct replication *replication, uint64_t now, bool may_renew)
{
    struct pace *pace = &replication->pace;
    if (!replication->serving || now - pace->time < PACE_MS)
        return;
    const struct lag *lag = tracker_lag(replication->serving);
    if (pace->time && lag->position >= pace->position)
        pace->bytes_per_second =
            (double)(lag->position - pace->position) * 1000 / (double)(now - pace->time);
    pace->time = now;
    pace->position = lag->position;
    if (may_renew && lag->known && now - lag->known > replication->config->max_lag_ms + PACE_MS)
        renew_when_quicker(replication);
}

/* What is about to be taken out needs no larger filter. */
static bool is_full(const struct replication *replication, size_t keyspace, size_t places)
{
    if (!generation_covers(generation_served(replication), keyspace))
        return false;
    struct filter_stats stats = filter_stats(generation_served(replication)->filters[keyspace]);
    size_t leaving = tracker_removals(replication->serving, (int)keyspace);
    return stats.keys - leaving > stats.capacity - stats.capacity / places;
}

/* The first keyspace, if any, whose followed filter has less than one of so many places free; else
 * their number. */
static size_t full_keyspace(const struct replication *replication, size_t places)
{
    size_t i = 0;
    while (i < generation_served(replication)->count && !is_full(replication, i, places))
        i++;
    return i;
}

/* A followed filter grows; another is built before it is full. */
static bool renew_when_nearly_full(struct replication *replication)
{
    if (!replication->serving)
        return false;
    size_t full = full_keyspace(replication, NEARLY_FULL);
    if (full == generation_served(replication)->count)
        return false;
    struct filter_stats stats = filter_stats(generation_served(replication)->filters[full]);
    log_info("keyspace %s: its filter is nearly full: %zu keys of %zu",
             replication->config->keyspaces[full].name, stats.keys, stats.capacity);
    replication->options.events->wanted(replication->options.arg);
    return true;
}

bool replication_lasts(const struct replication *replication)
{
    return !replication->serving ||
           full_keyspace(replication, ALMOST_FULL) == generation_served(replication)->count;
}

void replication_watch(struct replication *replication, uint64_t now, bool may_renew)
{
    if (may_renew && renew_when_nearly_full(replication))
        may_renew = false;
    watch_pace(replication, now, may_renew);
}
