/* Small allocations that cannot fail: out of memory, they abort. Private to backends/. */
#ifndef NESTGUARD_ALLOCATE_H
#define NESTGUARD_ALLOCATE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void *allocated(void *memory)
{
    if (!memory) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return memory;
}

/* Zeroed; a size of 0 is allowed. */
static inline void *allocate(size_t count, size_t size)
{
    return allocated(calloc(count ? count : 1, size ? size : 1));
}

/* A copy; NULL stays NULL. */
static inline char *allocate_text(const char *text)
{
    return text ? allocated(strdup(text)) : NULL;
}

#endif
