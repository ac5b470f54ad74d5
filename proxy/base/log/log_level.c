#include "base/log/log_level.h"

const char *log_level_name(enum log_level level)
{
    static const char *const names[] = {"debug", "info", "warning", "error"};
    return names[level];
}
