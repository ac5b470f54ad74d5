/* Where a server is: a name or an address, and a port. */
#ifndef NESTGUARD_REDIS_PLACE_H
#define NESTGUARD_REDIS_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { REDIS_HOST_SIZE = 256, REDIS_PLACE_TEXT = REDIS_HOST_SIZE + 16 };

struct redis_place {
    char host[REDIS_HOST_SIZE]; /* "": none */
    uint16_t port;
};

static inline bool redis_place_equal(const struct redis_place *a, const struct redis_place *b)
{
    return a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* False when the host is none, too long, or no name or address; or the port is no number that a
 * port may be. */
bool redis_place_set(struct redis_place *place, const char *host, const char *port);

/* "127.0.0.1:6379", "[::1]:6379" */
void redis_place_print(const struct redis_place *place, char text[REDIS_PLACE_TEXT]);

#endif
