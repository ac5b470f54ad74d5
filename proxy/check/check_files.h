/* Whether the process may have as many open files as max_clients and own_connections need. */
#ifndef NESTGUARD_CHECK_FILES_H
#define NESTGUARD_CHECK_FILES_H

#include "base/problem.h"
#include "config/config.h"

/* Adds an error where there is no room for a single client, a warning where there is room for
 * fewer, or for fewer connections of their own, than the file wants; with the limit that would do.
 * By config->limits; asks nobody. */
void check_files(const struct config *config, struct problems *problems);

#endif
