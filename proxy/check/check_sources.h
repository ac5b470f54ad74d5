/* Files of keys, read as a guard would. */
#ifndef NESTGUARD_CHECK_SOURCES_H
#define NESTGUARD_CHECK_SOURCES_H

#include "base/problem.h"
#include "config/config.h"

/* Adds an error for each that is not there or would be refused. It may take a
 * while. Returns the bytes that the filters of all others take. */
size_t check_sources(const struct config *config, struct problems *problems);

#endif
