#include "base/log/log_pace.h"

enum { PERIOD_MS = 1000 };

/* Of threads that come at the same time the one whose exchange succeeds has the word. */
bool log_pace_may(struct log_pace *pace, uint64_t now, uint64_t *left_out)
{
    uint64_t since = atomic_load(&pace->since);
    uint64_t period = pace->period_ms ? pace->period_ms : PERIOD_MS;
    if ((since && now - since < period) ||
        !atomic_compare_exchange_strong(&pace->since, &since, now)) {
        atomic_fetch_add(&pace->left_out, 1);
        return false;
    }
    uint64_t silent = atomic_exchange(&pace->left_out, 0);
    if (left_out)
        *left_out = silent;
    return true;
}
