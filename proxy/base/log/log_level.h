/* How much a line of the log matters. */
#ifndef NESTGUARD_LOG_LEVEL_H
#define NESTGUARD_LOG_LEVEL_H

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

/* "debug", "info", "warning", "error": as lines and settings say it. */
const char *log_level_name(enum log_level level);

#endif
