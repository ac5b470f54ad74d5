#include "worker/upstream/reply_window.h"

#include <stdint.h>

enum {
    BYTES = 1024 * 1024, /* that may be on their way */
    MOST = 256,          /* replies of these, however small */
    WEIGHT = 8           /* a reply counts as a part of this many */
};

static void choose(struct reply_window *window)
{
    size_t most = window->mean ? BYTES / window->mean : MOST;
    window->most = most < 1 ? 1 : most < MOST ? most : MOST;
}

void reply_window_init(struct reply_window *window)
{
    *window = (struct reply_window){.most = SIZE_MAX};
}

void reply_window_narrow(struct reply_window *window)
{
    *window = (struct reply_window){.mean = BYTES};
    choose(window);
}

void reply_window_take(struct reply_window *window, size_t bytes)
{
    window->bytes += bytes;
}

void reply_window_end(struct reply_window *window)
{
    window->mean += window->bytes / WEIGHT;
    window->mean -= window->mean / WEIGHT;
    window->bytes = 0;
    choose(window);
}
