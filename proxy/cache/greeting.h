/* What a connection to the cache begins with (redis_login.h), as bytes of RESP. */
#ifndef NESTGUARD_GREETING_H
#define NESTGUARD_GREETING_H

#include "base/buffer.h"
#include "config/config.h"

/* Appends the commands that log in, select the database, and with `resp3` switch to that protocol;
 * `name` is for CLIENT SETNAME, or NULL. Returns how many replies they will have. */
unsigned greeting_write(struct buffer *out, const struct cache_url *cache, bool resp3,
                        const char *name);

/* Only the first of them, also where no password is configured. */
void greeting_write_auth(struct buffer *out, const struct cache_url *cache);

/* Of a reply to one of them: 0, or as redis_login_judge(). */
int greeting_judge(struct span reply, bool resp3);

#endif
