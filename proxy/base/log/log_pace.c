#include "base/log/log_pace.h"

#include <stdio.h>

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

const char *log_pace_said(uint64_t left_out, char text[LOG_PACE_SAID])
{
    const char *lines = left_out == 1 ? "line was" : "lines were";
    text[0] = '\0';
    if (left_out)
        snprintf(text, LOG_PACE_SAID, "; %llu such %s left out since the last",
                 (unsigned long long)left_out, lines);
    return text;
}
