/* What is likely behind a failure to connect to the cache, or to log in there. */
#ifndef NESTGUARD_CHECK_CACHE_HINT_H
#define NESTGUARD_CHECK_CACHE_HINT_H

#include "config/config.h"

/* Static text: what is likely, and what to change; NULL: the error says all that is known. */
const char *check_cache_hint(const struct config *config, bool tls, const char *error);

#endif
