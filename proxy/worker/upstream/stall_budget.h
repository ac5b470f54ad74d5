/* How long slow readers may hold a shared connection up, all of them together: so much of any
 * second, wherever that begins. And in pieces: whoever shares it waits for the whole of one, so a
 * tenth of all lookups would wait as long as the second's share. */
#ifndef NESTGUARD_STALL_BUDGET_H
#define NESTGUARD_STALL_BUDGET_H

#include <stdint.h>

enum { STALL_BUDGET_MS = 100, STALL_WINDOW_MS = 1000, STALL_ONCE_MS = 10 };

/* Zeroed: it was never held up. */
struct stall_budget {
    uint64_t over; /* clock_ms() when the last stall ended */
    uint64_t used; /* of late */
};

/* How long it may be held up from `now` on, at most STALL_ONCE_MS; 0: not at all. */
uint64_t stall_budget_left(struct stall_budget *budget, uint64_t now);

/* It was, from `since` to `now`. */
void stall_budget_use(struct stall_budget *budget, uint64_t since, uint64_t now);

#endif
