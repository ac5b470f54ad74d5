/* Apart from the writing, which tests put something else in the place of. */
#include "base/log/log.h"

#include <stdatomic.h>

static _Atomic enum log_format format_now = LOG_TEXT;
static _Atomic enum log_level least_now = LOG_LEVEL_INFO;

void log_configure(enum log_format format, enum log_level least)
{
    atomic_store(&format_now, format);
    atomic_store(&least_now, least);
}

/* Asked on many paths, and relaxed: a line more or less while the level changes is no matter. */
bool log_wants(enum log_level level)
{
    return level >= atomic_load_explicit(&least_now, memory_order_relaxed);
}

enum log_format log_format_now(void)
{
    return atomic_load_explicit(&format_now, memory_order_relaxed);
}
