/* What a new connection to the cache begins with. */
#ifndef NESTGUARD_GREETING_H
#define NESTGUARD_GREETING_H

#include "base/buffer.h"
#include "config/config.h"

/* Appends the commands that log in, select the database, and with `resp3` switch to that protocol;
 * `name` is for CLIENT SETNAME, or NULL. Returns how many replies they will have. */
unsigned greeting_write(struct buffer *out, const struct cache_url *cache, bool resp3,
                        const char *name);

/* Only the first of them, also where no password is configured: a default user without one takes
 * any. */
void greeting_write_auth(struct buffer *out, const struct cache_url *cache);

#endif
