/* Asks the database, several times a second and over a connection of its own, where its log ends,
 * whether the stream still tells all, and what values are made of. See publication.h for the
 * question, lag.h and values.h for what the answers are for.
 */
#ifndef NESTGUARD_WAL_PROBE_H
#define NESTGUARD_WAL_PROBE_H

#include "config/config.h"
#include "postgres/pg_pool.h"

struct wal_probe;

struct probe {
    uint64_t time;           /* clock_ms() before the question was sent */
    const char *fingerprint; /* lives until the call returns */
    const char *snapshot;    /* the same; see snapshot.h */
    const char *values;      /* the same; see values.h */
    const char *names;       /* the same, of what the tables' names lead to */
    uint64_t end; /* of the log: everything that was committed by `time` lies before it */
};

struct wal_probe_options {
    const struct config *config; /* of the start */
    void (*probed)(void *arg, const struct probe *probe);
    /* The database did not answer the question; the next one follows all the same. `is_news`: not
     * of the question before. */
    void (*failed)(void *arg, const char *why, bool is_news);
    void *arg;
};

/* 0, or a negative errno with *error. The first question is asked when an interval is over, or by
 * wal_probe_now(). */
int wal_probe_create(struct wal_probe **out, uv_loop_t *loop,
                     const struct wal_probe_options *options, const char **error);

/* The keyspaces to ask about; an answer that is on its way does not count any more. */
void wal_probe_use_config(struct wal_probe *wal_probe, const struct config *config);

/* That it asks over. */
struct pg_pool *wal_probe_pool(struct wal_probe *wal_probe);

void wal_probe_now(struct wal_probe *wal_probe); /* asks at once, beside the rhythm */

/* Asks before its turn, 50 ms after the last answer at the earliest: so what this costs the
 * database does not grow with what is changed there. Does nothing while a question is on its way.
 */
void wal_probe_soon(struct wal_probe *wal_probe);
void wal_probe_close(struct wal_probe *wal_probe, void (*closed)(void *arg),
                     void *arg); /* NULL: calls closed at once */

#endif
