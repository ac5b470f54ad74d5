/* What all self-checks share: a connection of their own, for their questions may take long and must
 * keep neither loads nor probes waiting; how long those may take; and the account of the last one.
 */
#ifndef NESTGUARD_CHECKER_H
#define NESTGUARD_CHECKER_H

#include "follow/checks/selfcheck.h"

struct checker;

/* The last check that ended, of whichever generation. */
struct checker_account {
    uint64_t generation; /* its number; 0: there was none */
    uint64_t time;       /* clock_ms() */
    enum selfcheck_outcome outcome;
    const struct selfcheck_account *keyspaces; /* by their numbers */
    const uint64_t *failures; /* likewise: how many checks of it have found a row missing so far */
};

/* 0, or a negative errno with *error. */
int checker_create(struct checker **out, uv_loop_t *loop, const struct config *config,
                   const char **error);

void checker_use_config(struct checker *checker, const struct config *config);

/* For selfcheck_begin(). */
struct pg_pool *checker_pool(struct checker *checker);

/* Its connection is opened anew, before what is asked next. */
void checker_renew(struct checker *checker);

/* A check has ended. Where it ran out of time, the next may take twice as long: a table in which
 * the rows of a keyspace are hard to find was read through by the build, too. */
void checker_note(struct checker *checker, uint64_t generation,
                  const struct selfcheck_result *result);

const struct checker_account *checker_account(const struct checker *checker);

void checker_close(struct checker *checker, void (*closed)(void *arg),
                   void *arg); /* NULL: calls closed at once */

#endif
