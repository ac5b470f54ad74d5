/* Lines of a file or pipe, as bytes. */
#ifndef NESTGUARD_LINES_H
#define NESTGUARD_LINES_H

#include "base/span.h"

#include <stddef.h>

struct lines_reader {
    /* A line, without the newline that ends it, good until this returns; it may hold any other
     * bytes, also none at all. Returns 0, or anything else to stop. */
    int (*on_line)(void *arg, struct span line);
    /* Before each read(), which may wait, and at the end: whoever collects answers sends them
     * now. May be NULL. As above. */
    int (*on_pause)(void *arg);
    void *arg;
};

/* A file without newlines is no list of keys, and shall not be taken into memory whole. */
enum { LINE_MAX_BYTES = 64 << 20 };

/* Until the end; a last line needs no newline. The descriptor stays open. Returns 0, what a
 * function returned, -EMSGSIZE for a line longer than LINE_MAX_BYTES, or another negative errno. */
int lines_read(int fd, const struct lines_reader *reader);

#endif
