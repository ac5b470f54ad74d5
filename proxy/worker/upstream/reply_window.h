/* How many commands are sent ahead over a connection whose replies are large. A server answers all
 * that one connection has sent it before it looks at the next, so that others, on theirs, wait for
 * no more than these replies.
 */
#ifndef NESTGUARD_REPLY_WINDOW_H
#define NESTGUARD_REPLY_WINDOW_H

#include <stddef.h>

struct reply_window {
    size_t most;  /* commands under way at once; SIZE_MAX: any number */
    size_t mean;  /* bytes of a reply: a moving average, weighted exponentially */
    size_t bytes; /* of the reply that is coming in */
};

/* Any number. */
void reply_window_init(struct reply_window *window);

/* As many as are answered with some megabyte; none is known yet: one. */
void reply_window_narrow(struct reply_window *window);

/* So many bytes of a reply have come; or it is whole. */
void reply_window_take(struct reply_window *window, size_t bytes);
void reply_window_end(struct reply_window *window);

#endif
