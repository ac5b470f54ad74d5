/* What is wrong with the table behind a keyspace. */
#ifndef NESTGUARD_CHECK_TABLE_H
#define NESTGUARD_CHECK_TABLE_H

#include "base/problem.h"
#include "check/check_questions.h"
#include "config/config.h"

/* Adds every finding. `role` is the quoted name of the role that asks. Questions that the session's
 * end cuts short are left out without a word: whoever owns the session reports that. */
void check_table(struct questions *questions, const struct config *config,
                 const struct keyspace *keyspace, const char *role, struct problems *problems);

#endif
