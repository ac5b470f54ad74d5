/* A database for tests that answers when the test says so: it stands in for the pool, whose
 * functions it defines. */
#ifndef NESTGUARD_FAKES_PG_POOL_H
#define NESTGUARD_FAKES_PG_POOL_H

#include "postgres/pg_pool.h"

enum { FAKE_QUERIES = 64, FAKE_VALUES = 32, FAKE_BYTEA = 17, FAKE_TEXT = 25 };

/* Queries without an answer, oldest first. */
struct fake_query {
    size_t statement;
    char *values[FAKE_VALUES];
    pg_answer_cb done;
    void *arg;
};

extern struct fake_pool {
    struct fake_query queries[FAKE_QUERIES];
    size_t count;
    int params;                     /* of every statement */
    char *removed;                  /* what PQcmdTuples() says */
    struct pg_pool_options options; /* it was created with them */
    uint64_t timeout_ms;            /* as it was set last; 0: never */
    unsigned live, renewed;
    struct pg_error error;    /* why not all are up; "": they are */
    struct pg_pool_rule rule; /* the last, of whichever pool */
} fake_pool;

/* The oldest query gets this answer. */
void fake_answer(const struct pg_answer *answer);

void fake_outcome(enum pg_outcome outcome);

void fake_refusal(const char *sqlstate);

/* Rows, one behind the other: each the value, then the key columns as the database prints them;
 * NULL for SQL NULL. */
void fake_rows(Oid type, const char *const *cells, int rows, int count);

void fake_row(Oid type, const char *const *columns, int count);

/* One with a key of one column, whose value has so many bytes that it was not sent. */
void fake_large_row(const char *key, const char *bytes);

/* Nor any for who then asks for the same by another statement. */
void fake_no_row(void);

#endif
