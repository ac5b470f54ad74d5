/* Reads a share of a keyspace's rows over one connection, on a thread of its own, into a filter
 * that several copiers may fill together:
 *
 *   COPY ─▶ row ─▶ key ─▶ hash ─▶ filter
 */
#ifndef NESTGUARD_COPIER_H
#define NESTGUARD_COPIER_H

#include "build/copy/table_scan.h"
#include "config/config.h"
#include "filters/bitmap/bitmap.h"
#include "filters/filter.h"
#include "postgres/pg_session.h"

#include <uv.h>

/* What the copiers of one keyspace share. */
struct copy_target {
    struct filter *filter;
    struct bitmap *bitmap; /* of what is published of each row; NULL: nothing is */
    struct filter_seed seed;
    const struct keyspace *keyspace;
    bool keeps_copies;             /* each row is an entry, also when several have the same key */
    const struct table_scan *scan; /* that the statement is of */
    _Atomic uint64_t *counter;  /* of rows, for others to look at; also when they find no place */
    atomic_bool *stop;          /* that the sessions look at; set when a copier fails */
    const atomic_bool *hurried; /* else copiers rest after every few rows */
    _Atomic uint64_t rested_ns; /* by all of them together */
    uv_mutex_t lock;            /* for the filter, which has one writer at a time, and these: */
    uint64_t rows;
    bool overfull; /* a row found no place: from then on they are only counted */
};

struct copier;

/* Runs the COPY; takes the statement, and frees it. NULL: no thread could be had. Session and
 * target must live until copier_join(). */
struct copier *copier_start(struct copy_target *target, struct pg_session *session, char *sql);

/* Waits for its end and frees it. 0, or as pg_session_copy(). */
int copier_join(struct copier *copier, struct pg_error *error);

#endif
