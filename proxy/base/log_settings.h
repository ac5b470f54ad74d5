/* What log_configure() has set, for the one who writes the lines. */
#ifndef NESTGUARD_LOG_SETTINGS_H
#define NESTGUARD_LOG_SETTINGS_H

#include "base/log.h"

enum log_format log_format_now(void);

#endif
