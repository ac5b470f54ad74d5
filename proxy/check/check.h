/* `nestguard check`: everything that is wrong with cache and database for this configuration, with
 * the SQL that mends it. Needs no running guard. */
#ifndef NESTGUARD_CHECK_H
#define NESTGUARD_CHECK_H

#include "base/problem.h"
#include "config/config.h"

#include <stdbool.h>

/* What could be looked at. A server that is down is a warning in `problems`, not an error: serve
 * starts without it. */
struct check_reach {
    bool cache, database;
};

/* Asks cache and database whether the configuration can work with them. Waits at most some seconds
 * for each. */
struct check_reach check_backends(const struct config *config, struct problems *problems);

/* `nestguard check -c FILE`: prints all findings (file, cache, database) and a closing line, or all
 * of it as one JSON object (check_json.h); in this command a server that does not answer is an
 * error. Returns the exit status: 0 or 1. */
int check_main(const char *file, bool as_json);

#endif
