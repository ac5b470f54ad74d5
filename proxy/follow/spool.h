/* Bytes that are written in order and then read in order: in memory while they are few, else
 * in a temporary file without a name, in $TMPDIR or /tmp.
 *
 * Zeroed memory is an empty spool. All errors are negative errnos of the file, after which the
 * spool can only be cleared or finished.
 */
#ifndef NESTGUARD_SPOOL_H
#define NESTGUARD_SPOOL_H

#include "base/buffer.h"
#include <stdio.h>

enum { SPOOL_MEMORY_MAX = 2 * 1024 * 1024 };

struct spool {
    struct buffer buffer; /* all bytes while there is no file; then what was read last */
    size_t taken;         /* of the buffer's bytes, while there is no file */
    FILE *file;
};

void spool_finish(struct spool *spool); /* frees; the spool is empty again */
void spool_clear(struct spool *spool);  /* the same, but keeps memory for the next use */

int spool_append(struct spool *spool, const void *bytes, size_t length);

/* From here on the bytes are read, from the first one on. May be called again. */
int spool_rewind(struct spool *spool);

/* The next `length` bytes, which live until the next call; -ENODATA when there are not so many. */
int spool_take(struct spool *spool, size_t length, struct span *bytes);

#endif
