/* What is on its way over one PostgreSQL connection in pipeline mode. Knows libpq but no event
 * loop: the owner reads, flushes and waits. Private to backends/.
 *
 *   sent:      Parse Sync   Bind Execute Sync   Bind Execute Sync
 *              └─ a trip ─┘ └──── a trip ────┘  └──── a trip ────┘
 *   received:  COMMAND_OK NULL SYNC   TUPLES_OK NULL SYNC   ERROR NULL SYNC
 *
 * A trip is over only with its SYNC: a deferred constraint may still turn a good result into an
 * error while the server commits.
 */
#ifndef NESTGUARD_PG_PIPELINE_H
#define NESTGUARD_PG_PIPELINE_H

#include "postgres/pg_query.h"

struct pg_pipeline;

/* `statements` must outlive it, and may become another edition; ended queries are appended to
 * `ended`. */
struct pg_pipeline *pg_pipeline_create(const struct pg_statements *statements,
                                       struct pg_queries *ended);
void pg_pipeline_destroy(struct pg_pipeline *pipeline); /* empty, or after pg_pipeline_fail() */

/* Takes a connection into use that has just been opened. 0, or -ECONNRESET. */
int pg_pipeline_attach(struct pg_pipeline *pipeline, PGconn *pq);

/* Each appends a trip, and returns 0, or -ECONNRESET when the connection took nothing: the trip
 * then waits for pg_pipeline_fail().
 *
 * The timeout holds for each query behind it. From then on each is one process, too: a statement
 * may ask pg_locks what it has read, where a parallel worker's locks are gone with it. */
int pg_pipeline_set_timeout(struct pg_pipeline *pipeline, uint64_t timeout_ms, uint64_t deadline);
int pg_pipeline_query(struct pg_pipeline *pipeline, struct pg_query *query);

/* Takes up every result that libpq holds. 0, or -ECONNRESET with the reason when the connection is
 * of no use any more. */
int pg_pipeline_read(struct pg_pipeline *pipeline, struct pg_error *error);

/* Ends all queries, and forgets the connection. With PG_TIMEOUT those that are not due by `now` end
 * early. */
void pg_pipeline_fail(struct pg_pipeline *pipeline, enum pg_outcome outcome,
                      const struct pg_error *error, uint64_t now);

size_t pg_pipeline_depth(const struct pg_pipeline *pipeline);
size_t pg_pipeline_large(const struct pg_pipeline *pipeline);      /* queries of large answers */
uint64_t pg_pipeline_deadline(const struct pg_pipeline *pipeline); /* of the oldest; depth > 0 */

#endif
