/* The log of threads under test: what would be a line is counted. Errors are shown, too. */
#ifndef NESTGUARD_FAKES_LOG_H
#define NESTGUARD_FAKES_LOG_H

#include "base/log/log.h"

#include <stdatomic.h>

extern atomic_uint log_errors, log_warnings;

#endif
