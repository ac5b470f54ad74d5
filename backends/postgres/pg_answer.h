/* What is asked of a pool of connections, and what comes back. */
#ifndef NESTGUARD_PG_ANSWER_H
#define NESTGUARD_PG_ANSWER_H

#include "postgres/pg_error.h"
#include <stdbool.h>

/* A statement is prepared on a connection at its first use there. Its parameters' types are then
 * those of that moment; of one that is always new, those of now. */
struct pg_statement {
    const char *sql;
    int params;
    bool always_new;
    bool large; /* its answer may be long: see pg_pool_submit() */
};

enum pg_outcome {
    PG_DONE,    /* `result` holds rows or a command's status; it lives until the callback returns */
    PG_REFUSED, /* the server answered with an error; see `error` */
    PG_TIMEOUT, /* no answer within the time */
    PG_DOWN     /* no connection, or it was lost */
};

struct pg_answer {
    enum pg_outcome outcome;
    const PGresult *result;
    PGresult **owner; /* of the result; whoever sets it to NULL has that, and clears it */
    struct pg_error error;
    /* With PG_TIMEOUT: its time was not over, but that of another which its connection was given up
     * for. Over another it may be answered. */
    bool early;
};

typedef void (*pg_answer_cb)(void *arg, const struct pg_answer *answer);

#endif
