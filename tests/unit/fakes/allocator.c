#include "fakes/allocator.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__real_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__real_mremap(void *old, size_t old_size, size_t size, int flags, ...);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset);
void *__wrap_mremap(void *old, size_t old_size, size_t size, int flags, ...);

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

static void *map_failed(void)
{
    errno = ENOMEM;
    return MAP_FAILED;
}

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    return fails(size) ? map_failed() : __real_mmap(at, size, protection, flags, fd, offset);
}

/* Nobody says where it is to go. */
void *__wrap_mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    return fails(size) ? map_failed() : __real_mremap(old, old_size, size, flags);
}
