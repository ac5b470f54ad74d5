/* What workers tell of themselves: sums over all of them, of counters that each writes for itself.
 * They go on counting meanwhile: sums are near each other in time, but no snapshot. For any thread,
 * as long as the workers are there.
 */
#ifndef NESTGUARD_WORKER_REPORT_H
#define NESTGUARD_WORKER_REPORT_H

#include "worker/worker.h"

#define WORKER_REPORT_MEMBER(name, help) uint64_t name;

struct worker_report {
    WORKER_COUNTERS(WORKER_REPORT_MEMBER)
    uint64_t shared_connections, own_connections; /* to the cache, now */
    uint64_t stalled_ms;                          /* that shared ones waited for slow readers */
    uint64_t own_limit; /* of own_connections, by configuration, open files, and cache */
    uint64_t max_bulk;  /* likewise: the least of any worker */
};

/* Of one keyspace. */
struct lookups_report {
    KEYSPACE_COUNTERS(WORKER_REPORT_MEMBER)
};

/* Adds what this worker has counted. */
void worker_report_add(struct worker_report *to, const struct worker *worker);
void worker_report_add_lookups(struct lookups_report *to, const struct worker *worker,
                               size_t keyspace);

#endif
