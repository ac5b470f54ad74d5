#include "fakes/log.h"

#include <stdarg.h>
#include <stdio.h>

atomic_uint log_errors, log_warnings;

void log_line(enum log_level level, const char *format, ...)
{
    char line[500];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    atomic_fetch_add(level == LOG_LEVEL_ERROR ? &log_errors : &log_warnings,
                     level != LOG_LEVEL_INFO);
    if (level == LOG_LEVEL_ERROR)
        fprintf(stderr, "%s\n", line);
}
