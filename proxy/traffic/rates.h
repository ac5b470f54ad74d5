/* How fast a counter has risen lately: in the last second, minute and hour. */
#ifndef NESTGUARD_RATES_H
#define NESTGUARD_RATES_H

#include <stddef.h>
#include <stdint.h>

enum { RATE_MARKS = 61 }; /* sixty stretches have so many ends */

struct rate_marks {
    uint64_t times[RATE_MARKS], counts[RATE_MARKS]; /* a ring; times in ms */
    size_t next, count; /* the place of the next mark; how many there are */
};

/* Zeroed: nothing is known yet. */
struct rates {
    struct rate_marks seconds, minutes;
};

struct rate {
    double now, minute, hour; /* a second */
};

/* Once a second, with the counter as it is now. */
void rates_mark(struct rates *rates, uint64_t count, uint64_t now);

/* As of the last mark; 0 where none is old enough to tell. */
struct rate rates_of(const struct rates *rates);

#endif
