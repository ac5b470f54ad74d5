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
 * for each, and adds every finding. */
struct check_reach check_backends(const struct config *config, struct problems *problems);

/* What `nestguard check` has found. */
struct check_result {
    struct problems problems;
    struct config *config;        /* may be a draft; NULL: nothing was understood, or asked */
    char cache[64], database[64]; /* versions; "": not known */
};

/* Looks at file, ports, cache and database, also where the file has mistakes, as far as it was
 * understood; here a server that does not answer is an error. Ended with check_finish(). */
void check_run(struct check_result *result, const char *file);

/* All findings and a closing line, or all of it as one JSON object (check_json.h), on standard
 * output. Returns the exit status: 0 or 1. */
int check_print(const struct check_result *result, bool as_json);

/* Frees findings and configuration. */
void check_finish(struct check_result *result);

#endif
