/* Where a stream of the log begins, and the connection to read it on: a temporary logical
 * replication slot, which lives and dies with the connection, or just the end of the log as it is
 * now. Private to backends/.
 */
#ifndef NESTGUARD_PG_SLOT_H
#define NESTGUARD_PG_SLOT_H

#include "postgres/pg_session.h"
#include <stdint.h>

struct pg_slot {
    PGconn *pq; /* to the walsender, non-blocking; closed by the owner with PQfinish() */
    struct pg_server server;
    char name[64]; /* "": there is no slot */
    uint64_t consistent_point;
    char snapshot[64]; /* of a slot; lives until the next command on the connection */
};

/* Waits, and returns, as pg_stream_open() says; *slot means nothing unless that is 0, and is zeroed
 * before the call. */
int pg_slot_create(struct pg_slot *slot, const struct pg_session_options *options,
                   struct pg_error *error);

/* The same without a slot: `consistent_point` is where the flushed log ends. Waits for the server
 * alone. */
int pg_slot_skip(struct pg_slot *slot, const struct pg_session_options *options,
                 struct pg_error *error);

/* Queues the command that turns the connection into a stream: of a publication's changes, or
 * without a slot of the log as it is. The caller flushes, and reads the answer. 0, or
 * -ECONNREFUSED. */
int pg_slot_start(const struct pg_slot *slot, const char *publication, struct pg_error *error);

#endif
