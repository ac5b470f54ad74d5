/* A kind of line that strangers can cause, or many threads at once: one a second at most, or one in
 * another period, which says how many were left out since the last.
 */
#ifndef NESTGUARD_LOG_PACE_H
#define NESTGUARD_LOG_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing was said yet, and a second. Any thread may use it. */
struct log_pace {
    uint64_t period_ms;        /* from one line to the next, at least; 0: a second */
    _Atomic uint64_t since;    /* clock_ms() of the last line; 0: none */
    _Atomic uint64_t left_out; /* since then */
};

/* Whether this one is to be said now, at clock_ms() `now`; then *left_out, if it is not NULL,
 * is the number of those that were not since the line before. */
bool log_pace_may(struct log_pace *pace, uint64_t now, uint64_t *left_out);

/* How such a line ends: "; 3 such lines were left out since the last", or "" when none was. */
enum { LOG_PACE_SAID = 80 };
const char *log_pace_said(uint64_t left_out, char text[LOG_PACE_SAID]);

#endif
