/* Patience: after each refusal in a row the wait doubles, up to a bound. A part of each is drawn,
 * so that what was refused together does not come back together. */
#ifndef NESTGUARD_BACKOFF_H
#define NESTGUARD_BACKOFF_H

#include <stdint.h>

/* Zeroed: nothing was refused. */
struct backoff {
    uint64_t wait_ms; /* the last one, in full */
};

/* Of a full wait: 0 < least_ms <= most_ms. With a least of 0 none would ever double; and a quarter
 * of the most must fit 32 bits. */
struct backoff_bounds {
    uint64_t least_ms, most_ms;
};

/* How long to wait now, in ms: from three quarters of the full wait to all of it. */
uint64_t backoff_next(struct backoff *backoff, const struct backoff_bounds *bounds);

/* It went well: the next wait is the shortest. */
static inline void backoff_reset(struct backoff *backoff)
{
    backoff->wait_ms = 0;
}

#endif
