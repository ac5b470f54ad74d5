/* Small allocations that cannot fail: out of memory, they abort with a message, on purpose. What
 * peers choose the size of (replies, values, keys by the hundred thousand, a command's bytes) does
 * not come here: it is reported to whoever asked, by buffer_try_append() and its kin. */
#ifndef NESTGUARD_MEMORY_H
#define NESTGUARD_MEMORY_H

#include "base/span.h"

/* What different threads write is that far apart, or each write would take the other's memory out
 * of its processor's cache. */
enum { CACHE_LINE = 64 };

/* What they do without memory. */
_Noreturn void out_of_memory(void);

/* Never NULL, also for no bytes at all; each is for free(). */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);             /* zeroed */
void *xcalloc_aligned(size_t alignment, size_t size); /* a power of two; zeroed, for free() */
void *xrealloc(void *old, size_t size);
char *xstrdup(const char *text);
char *xstrndup(const char *text, size_t length); /* the copy ends with a zero byte */
char *xspandup(struct span text);                /* the same */
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* That part of a large allocation is never looked at again before it is freed: its whole pages go
 * back to the system, and read as zeros. */
void memory_forget(struct span part);

#endif
