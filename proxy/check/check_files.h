/* Whether the process may have as many open files as max_clients and own_connections need. */
#ifndef NESTGUARD_CHECK_FILES_H
#define NESTGUARD_CHECK_FILES_H

#include "base/problem.h"
#include "config/config.h"

void check_files(const struct config *config, struct problems *problems);

#endif
