/* A temporary logical replication slot, and the connection that it lives and dies with. Private to
 * backends/.
 */
#ifndef NESTGUARD_PG_SLOT_H
#define NESTGUARD_PG_SLOT_H

#include "pg_session.h"
#include <stdint.h>

struct pg_slot {
    PGconn *pq; /* to the walsender, non-blocking; closed by the owner with PQfinish() */
    char name[64];
    uint64_t consistent_point;
    char snapshot[64]; /* lives until the next command on the connection */
};

/* Waits, as pg_stream_open() says. */
int pg_slot_create(struct pg_slot *slot, const struct pg_session_options *options,
                   struct pg_error *error);

/* Queues the command that turns the connection into the stream of a publication's changes. The
 * caller flushes, and reads the answer. 0, or -ECONNREFUSED. */
int pg_slot_start(const struct pg_slot *slot, const char *publication, struct pg_error *error);

#endif
