/* Prometheus' text format: HELP and TYPE once for each name, before its samples. */
#ifndef NESTGUARD_EXPOSITION_H
#define NESTGUARD_EXPOSITION_H

#include "base/buffer.h"
#include "guard/histogram.h"

/* All names get "nestguard_" in front. Type: "counter", "gauge" or "histogram". Texts are written
 * as they are, so there is nothing in them that the format would want escaped; what comes from
 * outside is, by exposition_value(). */
void exposition_family(struct buffer *out, const char *name, const char *type, const char *help);

/* A label's value, with its quotes: whatever is in it, as the format wants it escaped. */
void exposition_value(struct buffer *out, const char *text);

/* The samples of one histogram, in seconds; `labels` as in `outcome="hit"`, or "". */
void exposition_durations(struct buffer *out, const char *name, const char *labels,
                          const struct durations *durations);

#endif
