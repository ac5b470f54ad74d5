/* Lines of a file or pipe, as bytes. */
#ifndef NESTGUARD_LINES_H
#define NESTGUARD_LINES_H

#include "base/span.h"

#include <stddef.h>

struct lines_reader {
    /* A line, without what ends it; returns 0, or anything else to stop. */
    int (*on_line)(void *arg, struct span line);
    /* Before it waits for more; may be NULL. As above. */
    int (*on_pause)(void *arg);
    void *arg;
};

enum { LINE_MAX_BYTES = 64 << 20 };

/* Until the end; a last line needs no newline. Returns 0, what a function returned, -EMSGSIZE for a
 * line longer than LINE_MAX_BYTES, or another negative errno. */
int lines_read(int fd, const struct lines_reader *reader);

#endif
