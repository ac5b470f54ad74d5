/* One keyspace's rows, read by COPY into its filter and its bitmap:
 *
 *   filling_begin() ─▶ both of them empty, for as many rows as there probably are
 *   filling_run()   ─▶ shares of the scan, a connection and a thread each ─▶ one filter
 *                        └─ the rows were others than that ─▶ once more, into one that fits
 *
 * All connections have one snapshot, so that a second reading finds the rows of the first. On the
 * build's thread, which waits for the others.
 */
#ifndef NESTGUARD_FILLING_H
#define NESTGUARD_FILLING_H

#include "build/build_helpers.h"
#include "build/copy/table_scan.h"
#include "guard/view.h"

#include <stdatomic.h>

struct filling {
    const struct config *config;
    size_t keyspace; /* of the configuration and of the generation */
    struct generation
        *generation;            /* nobody else's yet; gets filter and bitmap, and what they took */
    struct pg_session *session; /* in the transaction that has the snapshot */
    const struct build_helpers *helpers; /* in others that share it; all of them have locks */
    bool keeps_copies;      /* a log will be followed: each row is an entry, copies of a key, too */
    _Atomic uint64_t *rows; /* read so far, of all keyspaces, for others to look at */
    atomic_bool *halt;      /* what the sessions look at; set when a share fails */
    const atomic_bool *hurried;   /* else copiers rest after every few rows */
    const _Atomic size_t *beside; /* bytes of filters that are no generation's; NULL: none */
};

/* 0; or what filter_for() gave, with *error. */
int filling_begin(const struct filling *filling, uint64_t rows, struct pg_error *error);

/* Without a log, a key that several of the rows have is told to the log. 0; or a negative errno,
 * with *error: of the first share that failed, -EAGAIN without a thread,
 * -ENOSPC when the filter has no place for all rows, which never is so for want of a good estimate
 * alone. */
int filling_run(const struct filling *filling, const struct table_scan *scan,
                struct pg_error *error);

#endif
