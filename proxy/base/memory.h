/* Small allocations that cannot fail: out of memory, they abort with a message. Peer-sized ones are
 * bounded before they get here. */
#ifndef NESTGUARD_MEMORY_H
#define NESTGUARD_MEMORY_H

#include <stddef.h>

/* What different threads write is that far apart, or each write would take the other's memory out
 * of its processor's cache. */
enum { CACHE_LINE = 64 };

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);             /* zeroed */
void *xcalloc_aligned(size_t alignment, size_t size); /* a power of two; zeroed, for free() */
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length); /* the copy ends with a zero byte */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
