/* What is wrong with the database for a configuration. */
#ifndef NESTGUARD_CHECK_DATABASE_H
#define NESTGUARD_CHECK_DATABASE_H

#include "base/problem.h"
#include "config/config.h"

#include <stdatomic.h>

struct database_check {
    enum problem_level down; /* how bad it is that nobody answers */
    const atomic_bool *stop; /* once it is set, what was found means nothing; or NULL */
    size_t beside;           /* bytes of filters whose keys are in no table */
};

/* Adds every finding. Returns whether it could be asked, and then its version in version[64]
 * ("15.18"). Waits for each answer some seconds at most, and leaves nothing changed there. */
bool check_database(const struct config *config, const struct database_check *how,
                    struct problems *problems, char version[64]);

#endif
