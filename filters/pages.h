/* Large zeroed memory straight from the kernel. */
#ifndef NESTGUARD_PAGES_H
#define NESTGUARD_PAGES_H

#include <stddef.h>

/* The whole pages that `size` bytes take; 0 when there is no such number. */
size_t pages_round(size_t size);

/* Zeroed memory of `size` bytes, a multiple of the page size; NULL when there is none. From a huge
 * page on it is aligned for huge pages and asks for them: random probes into a table of many
 * megabytes otherwise pay a page walk each. */
void *pages_map(size_t size);
void pages_unmap(void *memory, size_t size);

#endif
