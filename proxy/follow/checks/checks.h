/* The self-checks of one generation: one before it may serve, and then again and again, for as long
 * as it does.
 *
 *   due ─▶ self-check ─┬─ good ─▶ passed(), the first time ─▶ due in a minute or more
 *                      ├─ failed ─▶ failed() ─▶ without that keyspace: due at once
 *                      └─ not decided ─┬─ before the first has passed ─▶ due at once, or failed()
 *                                      └─ else as after a good one
 */
#ifndef NESTGUARD_CHECKS_H
#define NESTGUARD_CHECKS_H

#include "follow/checks/checker.h"

/* For log and status. */
const char *checks_outcome_text(enum selfcheck_outcome outcome);

struct checks;

struct checks_options {
    struct checker *checker;
    const struct config *config; /* the generation's; outlives the checks */
    struct fn_checks *fn_checks;
    struct generation *generation;   /* outlives the checks */
    const struct snapshot *snapshot; /* as in selfcheck.h */
    /* The generation may serve. */
    void (*passed)(void *arg);
    /* What it has of this keyspace is not to be believed. True: it goes on without, given up. Else
     * it must be replaced, and only checks_close() may follow. `why` lives until the call returns.
     * A generation that follows no log also fails a first check that decides nothing, unless that
     * is a matter of time: another is built as soon as the database can be asked, and by rows that
     * are newer. */
    bool (*failed)(void *arg, size_t keyspace, const char *why);
    void *arg;
};

struct checks *checks_create(const struct checks_options *options);

/* Begins a check if one is due and none is under way; but for the first, over a new connection. */
void checks_when_due(struct checks *checks);

/* Neither function is called any more. Also from within them. NULL is allowed. */
void checks_close(struct checks *checks);

#endif
