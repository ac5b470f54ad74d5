/* Patterns of the shell (fnmatch), divided by commas or blanks. */
#include "config/config.h"

#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

enum { PATTERN_SIZE = 256 }; /* as hosts; what is longer is cut, and matches none */

bool config_is_in_zone(const struct config *config, const char *host)
{
    char pattern[PATTERN_SIZE];
    const char *at = config->cache_zone;
    if (!at)
        return true;
    while (*at) {
        size_t length = strcspn(at, ", ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, at);
        if (length && fnmatch(pattern, host, 0) == 0)
            return true;
        at += length + (at[length] != '\0');
    }
    return false;
}
