/* What both forms of the counters, JSON and Prometheus' text, have in common. The lists in
 * counters.h give both their names, so that a new counter shows up in both by itself. Private to
 * control/.
 */
#ifndef NESTGUARD_TALLY_H
#define NESTGUARD_TALLY_H

#include "keeper/parts/report.h"

struct counter_row {
    const char *name, *help; /* the member's in JSON; the metric's is made of it */
    size_t offset;           /* of a uint64_t in the report */
};

/* Each ends with a row of NULLs. */
extern const struct counter_row tally_keyspace_rows[], tally_load_rows[], tally_worker_rows[];

/* The counter of this row, in struct keyspace_report or struct worker_report. */
uint64_t tally_count(const void *report, const struct counter_row *row);

/* Share of the lookups of absent keys that the filter let pass: false positives found by loads,
 * against rejections. False: misses are not loaded, so that nobody finds them. Else *rate is from 0
 * to 1; 0 while no absent key was asked for. */
bool tally_measured_rate(const struct keyspace_report *keyspace, double *rate);

double tally_seconds_since(uint64_t then);      /* of clock_ms(), which is not in the future */
double tally_commit_time(int64_t microseconds); /* PostgreSQL's, since 2000, as Unix has it */

/* The first node is the server itself; the others only know where it is. */
bool tally_cache_is_up(const struct report *report);

#endif
