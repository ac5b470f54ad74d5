/* The last lines of the log, in memory, for who has no way to its file. So many, and of each so
 * much, and no more. Any thread may call.
 */
#ifndef NESTGUARD_LOG_KEPT_H
#define NESTGUARD_LOG_KEPT_H

#include "base/log/log_level.h"

#include <stddef.h>
#include <stdint.h>

enum { LOG_KEPT = 200, LOG_KEPT_TEXT = 480, LOG_STAMP = 25 };

struct log_entry {
    uint64_t number; /* from 1 on, of all lines of the process */
    enum log_level level;
    char time[LOG_STAMP];
    char text[LOG_KEPT_TEXT]; /* cut where it is longer, which three dots at its end say */
};

/* The time now, as lines have it. */
void log_stamp(char out[LOG_STAMP]);

/* Keeps a line, stamped with the time of the call; when there are LOG_KEPT, in the place of the
 * oldest. */
void log_keep(enum log_level level, const char *text);

/* Copies those behind number `after`, the oldest first. Returns how many; *last is the number of
 * the newest line of all, 0 before the first. */
size_t log_kept(uint64_t after, struct log_entry to[LOG_KEPT], uint64_t *last);

#endif
