/* The self-check: a sample of rows, read through an ordinary connection, must all be possible to
 * the filter. One that is not, and that doubts.h confirms, means that the generation is wrong.
 *
 *   sample each keyspace's table ─▶ every key possible? ─┬─ yes ─▶ passed
 *                                                        └─ no ─▶ a doubt ─┬─ cleared ─▶ passed
 *                                                                          └─ confirmed ─▶ failed
 */
#ifndef NESTGUARD_SELFCHECK_H
#define NESTGUARD_SELFCHECK_H

#include "doubts.h"
#include "pg_pool.h"

struct selfcheck;

struct selfcheck_options {
    struct pg_pool *pool; /* its statements first_statement + i are selfcheck_sql() of keyspace i */
    size_t first_statement;
    const struct config *config; /* the generation's; outlives the check */
    struct doubts *doubts;
    struct generation *generation; /* holds a reference */
    /* Called once, never before selfcheck_begin() has returned. Failed: `why` names keyspace and
     * key, and lives until the call returns. Undecided, for the database or `doubts` could not take
     * all questions: passed is false and why is NULL. `rows` were looked at. */
    void (*done)(void *arg, bool passed, const char *why, uint64_t rows);
    void *arg;
};

/* A new string: SELECT of some hundred key rows (the columns of the template in its order), drawn
 * from all over the table and from its beginning; no parameters. It reads a bounded number of
 * pages, however large the table is and however few of its rows are wanted. Only rows that the
 * keyspace has (`where`, no NULL in the key). */
char *selfcheck_sql(const struct keyspace *keyspace);

/* Begins; the memory goes by itself after done(). */
struct selfcheck *selfcheck_begin(const struct selfcheck_options *options);

/* Nobody wants to hear of it any more: done() is not called. Before `doubts` is destroyed, and not
 * from within done(). NULL is allowed. */
void selfcheck_cancel(struct selfcheck *check);

#endif
