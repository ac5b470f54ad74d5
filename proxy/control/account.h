/* What both forms of the account, JSON and Prometheus' text, have in common. The lists in
 * counters.h give both their names, so that a new counter shows up in both by itself. Private to
 * control/.
 */
#ifndef NESTGUARD_ACCOUNT_H
#define NESTGUARD_ACCOUNT_H

#include "keeper/parts/report.h"

struct counter_row {
    const char *name, *help; /* the member's in JSON; the metric's is made of it */
    size_t offset;           /* of a uint64_t in the report */
};

/* Each ends with a row of NULLs. */
extern const struct counter_row account_keyspace_rows[], account_load_rows[], account_worker_rows[];

/* The counter of this row, in struct keyspace_report or struct worker_report. */
uint64_t account_count(const void *report, const struct counter_row *row);

/* Share of the lookups of absent keys that the filter let pass: false positives found by loads,
 * against rejections. 0 to 1; 0 while no absent key was asked for. */
double account_measured_rate(const struct keyspace_report *keyspace);

double account_seconds_since(uint64_t then);      /* of clock_ms(), which is not in the future */
double account_commit_time(int64_t microseconds); /* PostgreSQL's, since 2000, as Unix has it */

/* The first node is the server itself; the others only know where it is. */
bool account_cache_is_up(const struct report *report);

#endif
