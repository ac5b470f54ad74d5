/* Memory for tables: mmap rather than malloc, so that a table is zeroed lazily, aligned for huge
 * pages, and given back to the system whole when its generation ends. */
#include "filters/pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

size_t pages_round(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > SIZE_MAX - page)
        return 0;
    return (size + page - 1) / page * page;
}

static char *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* mmap aligns to small pages only: map a huge page too much and cut off both ends. */
static void *map_aligned(size_t size)
{
    if (size > SIZE_MAX - HUGE_PAGE)
        return NULL;
    char *memory = map(size + HUGE_PAGE);
    if (!memory)
        return NULL;
    size_t before = (HUGE_PAGE - (uintptr_t)memory % HUGE_PAGE) % HUGE_PAGE;
    size_t after = HUGE_PAGE - before;
    if (before)
        munmap(memory, before);
    munmap(memory + before + size, after);
    return memory + before;
}

void *pages_map(size_t size)
{
    if (size < HUGE_PAGE)
        return map(size);
    void *memory = map_aligned(size);
    if (memory)
        (void)madvise(memory, size, MADV_HUGEPAGE); /* a wish: all works without */
    return memory;
}

void pages_unmap(void *memory, size_t size)
{
    munmap(memory, size);
}
