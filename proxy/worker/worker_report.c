/* The lists of counters.h make these sums: what is added there is told without a line here. */
#include "worker/worker_report.h"

#define ADD(name, help) to->name += counter_read(&from->name);

void worker_report_add(struct worker_report *to, const struct worker *worker)
{
    const struct worker_counters *from = &worker->serving.counters;
    WORKER_COUNTERS(ADD)
    to->shared_connections += counter_read(&from->shared_connections);
    to->stalled_ms += counter_read(&from->stalled_ms);
    to->own_connections += counter_read(&from->own_connections);
    to->own_limit += counter_read(&from->own_limit);
    uint64_t max_bulk = counter_read(&from->max_bulk);
    if (!to->max_bulk || max_bulk < to->max_bulk)
        to->max_bulk = max_bulk;
}

void worker_report_add_lookups(struct lookups_report *to, const struct worker *worker,
                               size_t keyspace)
{
    const struct keyspace_counters *from = &worker->serving.keyspaces[keyspace];
    KEYSPACE_COUNTERS(ADD)
}
