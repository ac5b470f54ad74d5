#include "fakes/allocator.h"

#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

static size_t large;
static unsigned left; /* large ones, the failing one included; 0: none fails any more */
static bool failed;

void allocator_fail(size_t bytes, unsigned nth)
{
    large = bytes;
    left = nth;
    if (nth)
        failed = false;
}

bool allocator_failed(void)
{
    return failed;
}

static bool fails(size_t size)
{
    if (!left || size < large || --left)
        return false;
    failed = true;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return fails(size) ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails(count * size) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails(size) ? NULL : __real_realloc(old, size);
}
