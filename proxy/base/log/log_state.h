/* The lines about something that may flap: each change is told, but no more often than once a
 * second; then what it is by that time.
 */
#ifndef NESTGUARD_LOG_STATE_H
#define NESTGUARD_LOG_STATE_H

#include "base/log/log_pace.h"

/* Zeroed: it is well, and nobody needs to be told. Of one thread. */
struct log_state {
    char text[512]; /* what is told of it */
    bool is_bad;    /* by which the line's level is chosen */
    bool is_news;   /* the log has not been told of it */
    struct log_pace pace;
};

/* It is so now. What says the same as the last is no news; compared as far as it is kept. */
void log_state_set(struct log_state *state, bool is_bad, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether `text` is to be said now, at clock_ms() `now`: asked behind each change, and once in a
 * while. */
bool log_state_may_tell(struct log_state *state, uint64_t now);

#endif
