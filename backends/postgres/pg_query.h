/* A query on its way through the pool, and lists of them. Private to backends/.
 *
 *   pg_query_create ──▶ waiting or sent ──▶ pg_query_end ──▶ list of ended ──▶ pg_query_deliver
 *
 * What ends a query only says how; the caller hears of it later, from the top of the event loop.
 * So no callback ever runs in the middle of a change of state.
 */
#ifndef NESTGUARD_PG_QUERY_H
#define NESTGUARD_PG_QUERY_H

#include "postgres/pg_answer.h"
#include <stddef.h>
#include <stdint.h>

struct pg_query {
    struct pg_query *next;
    pg_answer_cb done;
    void *arg;
    uint64_t deadline;       /* on the loop's clock: until when it may wait for an answer */
    bool repeated;           /* sent a second time after its statement had to be prepared anew */
    bool early;              /* as in pg_answer.h */
    bool large;              /* its statement is */
    enum pg_outcome outcome; /* this and the next two: as pg_query_end() was told */
    PGresult *result;        /* its own; NULL: there is none */
    struct pg_error *error;  /* likewise */
    size_t statement;
    int count;
    const char *values[]; /* the texts lie behind */
};

/* What a pool's connections prepare. A table that took the place of another is a later edition: it
 * has as many at least, of which the other's may read otherwise. */
struct pg_statements {
    const struct pg_statement *at;
    size_t count;
    unsigned edition;
};

/* A queue; zeroed it is empty. */
struct pg_queries {
    struct pg_query *first, *last;
};

/* Copies `count` texts, each of which may be NULL. */
struct pg_query *pg_query_create(size_t statement, int count, const char *const *values,
                                 pg_answer_cb done, void *arg);

/* Sets how it ended, once. Takes `result` over (may be NULL); copies `error` (may be NULL). */
void pg_query_end(struct pg_query *query, enum pg_outcome outcome, PGresult *result,
                  const struct pg_error *error);

/* Calls the callback and frees the query. */
void pg_query_deliver(struct pg_query *query);

void pg_queries_append(struct pg_queries *queries, struct pg_query *query);
struct pg_query *pg_queries_take(struct pg_queries *queries); /* the first, or NULL */

#endif
