/* What the guard tells of itself: JSON for /v1/status, Prometheus text for /metrics. */
#ifndef NESTGUARD_STATUS_H
#define NESTGUARD_STATUS_H

#include "base/buffer.h"
#include "keeper/parts/report.h"
#include <jansson.h>
#include <stdbool.h>

/* All are made from one report, which must have been filled by keeper_report(); the JSON values are
 * new references. Names are a contract with dashboards and alerts: members and metrics are added,
 * never renamed. What is not known is null in JSON and has no line in the metrics.
 *
 * Counters count from the beginning of the process; a keyspace's, of all that had its name in it.
 *
 * status_json() has these members:
 *
 *   ready, guarding, attack   what an operator wants to know first
 *   keyspaces                 a list: state and reason, filter, self_check, published,
 *                             last_load_error, and a counter for each row of account.h
 *   generation, building      the one in force, and the next one; null: there is none
 *   stream                    how far the log is followed; null: it is not
 *   backends                  the cache and its nodes, the database and its loads
 *   limits                    what holds of clients, which may be less than was configured
 *   all others                of the whole guard: clients, connections, commands */

bool status_is_serving(const struct report *report);  /* clients are accepted and answered */
bool status_is_guarding(const struct report *report); /* every keyspace is */
json_t *status_states(const struct report *report);   /* {"items": "guarding", ...} */
json_t *status_json(const struct report *report);
json_t *
status_position(const struct stream_report *stream); /* of the log, followed so far; or null */
/* Why the database refused the last load of a keyspace that it refused, and how many since it gave
 * a row of it; null where it has given one since. */
json_t *status_load_error(const struct refused_load *latest);
void status_metrics(const struct report *report, struct buffer *out);

#endif
