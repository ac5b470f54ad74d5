#include "worker/upstream/stall_budget.h"

/* What was used counts until a second has passed without any more: of windows that follow each
 * other, a stall at the end of one and another at the beginning of the next would make two. */
uint64_t stall_budget_left(struct stall_budget *budget, uint64_t now)
{
    if (now - budget->over >= STALL_WINDOW_MS)
        budget->used = 0;
    uint64_t left = budget->used < STALL_BUDGET_MS ? STALL_BUDGET_MS - budget->used : 0;
    return left < STALL_ONCE_MS ? left : STALL_ONCE_MS;
}

void stall_budget_use(struct stall_budget *budget, uint64_t since, uint64_t now)
{
    budget->used += now - since;
    budget->over = now;
}
