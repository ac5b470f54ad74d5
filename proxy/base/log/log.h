/* The log: one line an event on standard error, whole lines only. Any thread may call. Libraries
 * below proxy/ never log. Nobody waits for who reads it: what is not taken is left out.
 *
 *   text      2026-11-20T10:00:00.123Z info    keyspace items: guarding, was loading: …
 *   json      {"time": "…", "level": "info", "event": "keyspace %s: %s, was %s: %s",
 *              "values": ["items", "guarding", "loading", "…"], "message": "…"}
 *   journald  <6>info    keyspace items: …
 *
 * A line of JSON is cut off, in its texts, where it would be longer than a pipe takes at once.
 *
 * `event` is the message before anything was put into it: the same for each message of its kind,
 * and so are the places of what `values` has.
 */
#ifndef NESTGUARD_LOG_H
#define NESTGUARD_LOG_H

#include "base/log/log_level.h"

#include <stdbool.h>

enum log_format { LOG_TEXT, LOG_JSON };

/* From now on, for all threads. Before the first call: text, from info on. */
void log_configure(enum log_format format, enum log_level least);

/* As it was configured last; any thread. */
enum log_format log_format_now(void);

/* Whether a program takes the lines: the journal, or whoever wanted JSON. Else a person may read
 * them as they are written. Any thread. */
bool log_is_for_programs(void);

/* Whether lines of this level are written at all. */
bool log_wants(enum log_level level);

/* Writes one line, if its level is wanted: line breaks become blanks, and more than 2047 bytes are
 * cut off. Never fails, and never waits for whoever reads the log. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...)                                                                             \
    do {                                                                                           \
        if (log_wants(LOG_LEVEL_DEBUG))                                                            \
            log_line(LOG_LEVEL_DEBUG, __VA_ARGS__);                                                \
    } while (0)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)

#endif
