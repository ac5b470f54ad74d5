/* The log: one line an event on standard error. `2026-11-20T10:00:00.123Z info  message`; the time
 * is left out under systemd, which adds its own. Any thread may call. Libraries below proxy/ never
 * log.
 */
#ifndef NESTGUARD_LOG_H
#define NESTGUARD_LOG_H

enum log_level { LOG_LEVEL_INFO, LOG_LEVEL_WARNING, LOG_LEVEL_ERROR };

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
