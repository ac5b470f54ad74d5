/* When a small allocation fails there is no memory for anything sensible to be done about it
 * either.
 */
#include "base/memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void out_of_memory(void)
{
    fputs("nestguard: out of memory\n", stderr);
    abort();
}

static void *or_abort(void *memory)
{
    if (!memory)
        out_of_memory();
    return memory;
}

/* malloc(0) may be NULL, which must not be taken for no memory. */
void *xmalloc(size_t size)
{
    return or_abort(malloc(size ? size : 1));
}

void *xcalloc(size_t count, size_t size)
{
    return or_abort(calloc(count ? count : 1, size ? size : 1));
}

/* aligned_alloc() takes only sizes that are multiples of the alignment (C11, 7.22.3.1). */
void *xcalloc_aligned(size_t alignment, size_t size)
{
    size_t rounded = (size + alignment - 1) / alignment * alignment;
    return memset(or_abort(aligned_alloc(alignment, rounded)), 0, rounded);
}

void *xrealloc(void *old, size_t size)
{
    return or_abort(realloc(old, size ? size : 1));
}

char *xstrdup(const char *text)
{
    return or_abort(strdup(text));
}

char *xstrndup(const char *text, size_t length)
{
    char *copy = xmalloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *xspandup(struct span text)
{
    return xstrndup(text.at, text.length);
}

char *xasprintf(const char *format, ...)
{
    va_list list;
    char *text = NULL;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    return or_abort(length < 0 ? NULL : text);
}

void memory_forget(struct span part)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t from = (uintptr_t)part.at + page - 1, end = (uintptr_t)part.at + part.length;
    from -= from % page;
    end -= end % page;
    if (from < end)
        madvise((void *)from, end - from, MADV_DONTNEED);
}
