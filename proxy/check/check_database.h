/* What is wrong with the database for a configuration. */
#ifndef NESTGUARD_CHECK_DATABASE_H
#define NESTGUARD_CHECK_DATABASE_H

#include "base/problem.h"
#include "config/config.h"

#include <stdatomic.h>

/* Adds every finding; a database that does not answer is one of the level `down`. Returns whether
 * it could be asked, and then its version in version[64] ("15.18").
 * Waits for each answer some seconds at most, and leaves nothing changed there. Once `stop` is set,
 * which may be NULL, what was found means nothing. */
bool check_database(const struct config *config, enum problem_level down, const atomic_bool *stop,
                    struct problems *problems, char version[64]);

#endif
