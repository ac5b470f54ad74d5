/* How far behind the database a follower is, in time, by probes of the log's end.
 *
 *   t0: where does the log end? L ─▶ later: the stream has delivered everything before L
 *                                        ─▶ all that was committed by t0 is known
 *
 * So the answer is never better than the truth: `known` is a time by which every commit that had
 * returned is in the filter. It works on an idle database, too, where no commit would tell the
 * time.
 */
#ifndef NESTGUARD_LAG_H
#define NESTGUARD_LAG_H

#include <stdbool.h>
#include <stdint.h>

enum { LAG_PROBES = 32 };

struct lag_probe {
    uint64_t time; /* clock_ms() before the question was sent */
    uint64_t lsn;  /* the log's end that it was answered with */
};

/* Zeroed memory is a lag that knows nothing. */
struct lag {
    struct lag_probe probes[LAG_PROBES]; /* not reached yet, oldest first */
    unsigned count;
    uint64_t position; /* everything committed before it has been applied */
    uint64_t end;      /* the newest end of the log that was heard of */
    uint64_t known;    /* time of the newest probe that was reached; 0: none yet */
};

/* The answer to a probe; times never go back. When there are too many unreached ones, the newest is
 * replaced. */
void lag_probed(struct lag *lag, uint64_t time, uint64_t lsn);

/* The stream has delivered everything that was committed before `lsn`. */
void lag_reached(struct lag *lag, uint64_t lsn);

/* Bytes of log between the position and the newest known end. */
uint64_t lag_bytes(const struct lag *lag);

/* The server's two words for the log's end, made one: where the flushed log ends exactly at a page,
 * the insert position stands behind the next page's header, which no stream reaches before
 * something is written. */
uint64_t lag_end_of_log(uint64_t insert, uint64_t flush);

#endif
