/* Whether the database has what another configuration wants of it, for a guard that runs. */
#ifndef NESTGUARD_CHECK_CHANGE_H
#define NESTGUARD_CHECK_CHANGE_H

#include "base/problem.h"
#include "config/config.h"

#include <stdatomic.h>

/* Adds an error for each reason not to go over from `running` to `wanted`: what `nestguard check`
 * calls one, unless it is wrong with the one that runs, too, or about a keyspace that stays as it
 * is: that is a warning, for it would keep everything else in the file from being taken. So is a
 * database that does not answer, unless `wanted` is the first to name it. Waits as check_database()
 * does, and of `stop` the same holds.
 */
void check_change(const struct config *running, const struct config *wanted,
                  const atomic_bool *stop, struct problems *problems);

#endif
