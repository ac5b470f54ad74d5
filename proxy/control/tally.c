/* A row of a table has a counter's place in the report, not its value: so one table serves every
 * keyspace and every worker, and both forms of the account go through the same rows.
 */
#include "control/tally.h"

#include "base/clock.h"

#include <string.h>

/* PostgreSQL counts from 2000-01-01. */
enum { EPOCH_SECONDS = 946684800 };

#define KEYSPACE_ROW(name, help) {#name, help, offsetof(struct keyspace_report, lookups.name)},
#define LOAD_ROW(name, help) {#name, help, offsetof(struct keyspace_report, name)},
#define WORKER_ROW(name, help) {#name, help, offsetof(struct worker_report, name)},
const struct counter_row tally_keyspace_rows[] = {KEYSPACE_COUNTERS(KEYSPACE_ROW){0}};
const struct counter_row tally_load_rows[] = {LOAD_COUNTERS(LOAD_ROW){0}};
const struct counter_row tally_worker_rows[] = {WORKER_COUNTERS(WORKER_ROW){0}};

uint64_t tally_count(const void *report, const struct counter_row *row)
{
    uint64_t count;
    memcpy(&count, (const char *)report + row->offset, sizeof count);
    return count;
}

bool tally_measured_rate(const struct keyspace_report *keyspace, double *rate)
{
    uint64_t passed = keyspace->false_positives + keyspace->known_absent;
    uint64_t all = passed + keyspace->lookups.rejected + keyspace->lookups.would_reject;
    *rate = all ? (double)passed / (double)all : 0;
    return keyspace_has_rows(keyspace->config) && keyspace->config->on_miss == MISS_LOAD;
}

double tally_seconds_since(uint64_t then)
{
    return (double)(clock_ms() - then) / 1000;
}

double tally_commit_time(int64_t microseconds)
{
    return (double)microseconds / 1e6 + EPOCH_SECONDS;
}

/* The one server, or all nodes of a cluster, and all slots; it does not depend on each of the
 * sentinels. */
bool tally_cache_is_up(const struct report *report)
{
    if (report->slots_uncovered)
        return false;
    for (size_t i = 0; i < report->cache_nodes; i++)
        if (!report->cache[i].up && (i == 0 || report->cache[i].role != REDIS_SENTINEL))
            return false;
    return report->cache_nodes > 0;
}
