/* Patience after a refusal: when to try again, ever later.
 *
 *   refused ─▶ retry_set() ─▶ a timer at retry_earlier() ─▶ retry_if_due() ─▶ `at` is 0: try
 *
 * Whoever succeeds resets the backoff. Several share one timer: it goes to the earliest.
 */
#ifndef NESTGUARD_RETRY_H
#define NESTGUARD_RETRY_H

#include "net/backoff.h"

/* Zeroed: nothing was refused. */
struct retry {
    uint64_t at; /* on the caller's clock, in ms; 0: nothing has to wait */
    struct backoff backoff;
};

void retry_set(struct retry *retry, uint64_t now); /* 100 ms from now at most; doubles to 5 s */
void retry_set_soon(struct retry *retry, uint64_t now); /* as if nothing had been refused before */
/* The time has come: `at` is 0 again, and whoever waits for that may try. */
void retry_if_due(struct retry *retry, uint64_t now);

/* This time or the retry's, whichever is earlier; 0 is none. */
uint64_t retry_earlier(uint64_t one, const struct retry *retry);

#endif
