/* What a new connection to the cache begins with. */
#ifndef NESTGUARD_GREETING_H
#define NESTGUARD_GREETING_H

#include "buffer.h"
#include "config.h"

/* Appends the commands that log in and select the database; returns how many replies they will
 * have.
 */
unsigned greeting_write(struct buffer *out, const struct cache_url *cache);

#endif
