/* Whether the database has what another configuration wants of it, for a guard that runs. */
#ifndef NESTGUARD_CHECK_CHANGE_H
#define NESTGUARD_CHECK_CHANGE_H

#include "base/problem.h"
#include "config/config.h"

#include <stdatomic.h>

/* Adds an error for each reason not to go over from `running` to `wanted`: of what `nestguard
 * check` calls one, what keeps a keyspace from being guarded that the file adds or changes, and, if
 * `wanted` names another database, that it cannot be reached, or lacks what the one before has.
 * Else it is a warning, for it would keep everything else in the file from being taken; what is
 * wrong with `running` as a whole, too, is left out. Waits as check_database() does, and of `stop`
 * the same holds. */
void check_change(const struct config *running, const struct config *wanted,
                  const atomic_bool *stop, struct problems *problems);

#endif
