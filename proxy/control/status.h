/* What the guard tells of itself: JSON for /v1/status, Prometheus text for /metrics. */
#ifndef NESTGUARD_STATUS_H
#define NESTGUARD_STATUS_H

#include "base/buffer.h"
#include <jansson.h>
#include <stdbool.h>

struct keeper;

bool status_is_serving(const struct keeper *keeper);  /* clients are accepted and answered */
bool status_is_guarding(const struct keeper *keeper); /* every keyspace is */
json_t *status_states(const struct keeper *keeper);   /* {"items": "guarding", ...} */
json_t *status_json(const struct keeper *keeper);
json_t *status_position(const struct keeper *keeper); /* of the log, followed so far; or null */
void status_metrics(const struct keeper *keeper, struct buffer *out);

#endif
