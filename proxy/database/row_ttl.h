/* How long a row's value may be cached, as its keyspace's ttl_expression says. */
#ifndef NESTGUARD_ROW_TTL_H
#define NESTGUARD_ROW_TTL_H

#include <stdint.h>

enum {
    ROW_TTL_UNSAID = 0,     /* the row has none of its own: as the keyspace's ttl says */
    ROW_TTL_OVER = -1,      /* not at all */
    ROW_TTL_UNREADABLE = -2 /* likewise, for want of knowing better */
};

/* Milliseconds, or one of these. Of the server's text: seconds, with a fraction maybe; at least a
 * millisecond if they are more than none, and at most as many as a `ttl` may have. NULL is
 * ROW_TTL_UNSAID, 0 and less ROW_TTL_OVER, and what is no number ROW_TTL_UNREADABLE. */
int64_t row_ttl_ms(const char *seconds);

#endif
