/* Hosts and ports that others name (sentinels, in answers and messages) come into connections, logs
 * and status: so nothing is let through that no name or address has. The % is that of an address
 * with a zone, fe80::1%eth0.
 */
#include "redis/topology/redis_place.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

bool redis_place_set(struct redis_place *place, const char *host, const char *port)
{
    size_t length = strlen(host), digits = strlen(port);
    unsigned long number = strtoul(port, NULL, 10);
    for (const char *at = host; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr(".:-_%", *at))
            return false;
    if (!length || length >= sizeof place->host || !digits || digits > 5 ||
        strspn(port, "0123456789") != digits || !number || number > UINT16_MAX)
        return false;
    memcpy(place->host, host, length + 1);
    place->port = (uint16_t)number;
    return true;
}

void redis_place_print(const struct redis_place *place, char text[REDIS_PLACE_TEXT])
{
    snprintf(text, REDIS_PLACE_TEXT, strchr(place->host, ':') ? "[%s]:%u" : "%s:%u", place->host,
             (unsigned)place->port);
}
