/* What workers time: X(NAME, family, labels, help). Histograms of one family stand together; the
 * names and labels in /metrics come from this list.
 *
 * Of a lookup (GET, MGET, EXISTS) it is the time from the turn of the loop in which its command was
 * read to the one in which its reply was ready, measured of each that is not rejected at once.
 * Those that are cost no clock: ten turns a second of each worker are timed, from when their input
 * was read until their replies were written, and each stands for all rejects since the one before.
 */
#ifndef NESTGUARD_TIMING_H
#define NESTGUARD_TIMING_H

#include "guard/histogram.h"

enum lookup_outcome {
    LOOKUP_REJECTED,
    LOOKUP_HIT,    /* the cache had it */
    LOOKUP_MISS,   /* it had not, and the application loads by itself */
    LOOKUP_LOADED, /* the database had it */
    LOOKUP_NO_ROW, /* it had not */
    LOOKUP_ERROR,
    LOOKUP_OUTCOMES
};

#define LOOKUP_TIMES(X, VERDICT, verdict)                                                          \
    X(VERDICT##_REJECTED, "lookup_seconds", verdict ",outcome=\"rejected\"", TIMING_LOOKUP)        \
    X(VERDICT##_HIT, "lookup_seconds", verdict ",outcome=\"hit\"", TIMING_LOOKUP)                  \
    X(VERDICT##_MISS, "lookup_seconds", verdict ",outcome=\"miss\"", TIMING_LOOKUP)                \
    X(VERDICT##_LOADED, "lookup_seconds", verdict ",outcome=\"loaded\"", TIMING_LOOKUP)            \
    X(VERDICT##_NO_ROW, "lookup_seconds", verdict ",outcome=\"no_row\"", TIMING_LOOKUP)            \
    X(VERDICT##_ERROR, "lookup_seconds", verdict ",outcome=\"error\"", TIMING_LOOKUP)

#define TIMING_LOOKUP                                                                              \
    "How long lookups of guarded keys took, by what the filter said and what became of them"
#define TIMING_CACHE "How long the cache took for lookups of guarded keys, by what it answered"

#define WORKER_TIMES(X)                                                                            \
    LOOKUP_TIMES(X, ABSENT, "verdict=\"absent\"")                                                  \
    LOOKUP_TIMES(X, POSSIBLE, "verdict=\"possible\"")                                              \
    X(CACHE_HIT, "cache_seconds", "outcome=\"hit\"", TIMING_CACHE)                                 \
    X(CACHE_MISS, "cache_seconds", "outcome=\"miss\"", TIMING_CACHE)                               \
    X(CACHE_ERROR, "cache_seconds", "outcome=\"error\"", TIMING_CACHE)                             \
    X(TURN, "loop_turn_seconds", "",                                                               \
      "How long workers took for what a turn of the loop had read, of ten a second of each")

#define TIME_NUMBER(name, family, labels, help) TIME_##name,
enum worker_time { WORKER_TIMES(TIME_NUMBER) WORKER_TIME_COUNT };

#endif
