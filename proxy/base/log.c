/* To standard error, where a service manager, a container or a terminal takes it from. */
#include "base/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* systemd sets JOURNAL_STREAM for services whose output it stamps itself. */
static void stamp(char *out, size_t size)
{
    struct timespec now;
    struct tm utc;
    out[0] = '\0';
    if (getenv("JOURNAL_STREAM"))
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t used = strftime(out, size, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(out + used, size - used, ".%03ldZ ", now.tv_nsec / 1000000);
}

void log_line(enum log_level level, const char *format, ...)
{
    static const char *const names[] = {"info   ", "warning", "error  "};
    char when[40], line[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    for (char *c = line; *c; c++)
        if (*c == '\n' || *c == '\r')
            *c = ' ';
    stamp(when, sizeof when);
    fprintf(stderr, "%s%s %s\n", when, names[level],
            line); /* one call: lines of threads do not mix */
}
