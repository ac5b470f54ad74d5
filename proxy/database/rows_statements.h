/* What is asked of a pool about rows (rows.h). */
#ifndef NESTGUARD_ROWS_STATEMENTS_H
#define NESTGUARD_ROWS_STATEMENTS_H

#include "config/config.h"
#include "postgres/pg_pool.h"

enum {
    ROW_WAYS_MAX = 16,      /* to split a key; of more: LOAD_AMBIGUOUS */
    ROW_SMALL = 1024 * 1024 /* bytes of a value that is loaded at once */
};

/* A statement's number in the pool is keyspace * STATEMENTS + one of these. */
enum {
    STATEMENT_LOAD,
    STATEMENT_LOAD_ANEW,
    STATEMENT_LOAD_LARGE,
    STATEMENT_FIND,
    STATEMENT_CONFIRM,
    STATEMENT_CONFIRM_WAYS, /* of ROW_WAYS_MAX ways; only of a key with several columns */
    STATEMENT_REMOVE,
    STATEMENT_ACCEPTS,
    STATEMENTS
};

/* The pool's statements for a configuration, as many for each keyspace. */
struct rows_statements {
    struct pg_statement *at;
    size_t count;
};

void rows_statements_init(struct rows_statements *statements, const struct config *config);
void rows_statements_finish(struct rows_statements *statements); /* zeroed ones, too */

#endif
