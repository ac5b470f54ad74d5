#include "cli/progress.h"

#include "base/clock.h"

#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { EVERY_MS = 100 };

static uint64_t shown_at; /* 0: nothing is shown */

void progress_show(const char *what, uint64_t done, uint64_t total)
{
    uint64_t now = clock_ms();
    if (now - shown_at < EVERY_MS || !isatty(STDERR_FILENO))
        return;
    shown_at = now;
    fprintf(stderr, "\r\033[K%s: %llu", what, (unsigned long long)done);
    if (total)
        fprintf(stderr, " of %llu (%.0f %%)", (unsigned long long)total,
                100 * (double)done / (double)total);
    fflush(stderr);
}

void progress_end(void)
{
    if (shown_at)
        fputs("\r\033[K", stderr);
    shown_at = 0;
}
