/* An application's pool of connections to PostgreSQL, for lookups.c: each asks for one row at a
 * time, and who finds none free waits in line. Errors of the connections end the program.
 */
#ifndef NESTGUARD_BENCH_ROW_POOL_H
#define NESTGUARD_BENCH_ROW_POOL_H

#include "cache_link.h"

/* `value` is NULL when there is no such row. */
typedef void row_pool_row_fn(struct lookup *lookup, const char *value);

struct row_pool;

struct row_pool *row_pool_create(const char *conninfo, unsigned size, row_pool_row_fn *on_row);
void row_pool_destroy(struct row_pool *pool);

/* The socket of the i-th connection. */
int row_pool_fd(const struct row_pool *pool, unsigned i);

/* Asks for the row; on_row is called from row_pool_read(). */
void row_pool_ask(struct row_pool *pool, struct lookup *lookup);

/* Takes what has come on the i-th connection. */
void row_pool_read(struct row_pool *pool, unsigned i);

#endif
