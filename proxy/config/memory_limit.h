/* How much memory the process may take at most, which bounds are worked out of that the file does
 * not name.
 */
#ifndef NESTGUARD_MEMORY_LIMIT_H
#define NESTGUARD_MEMORY_LIMIT_H

#include <stdint.h>

/* Bytes: the machine's, or fewer where a control group of the process says so. */
uint64_t memory_limit(void);

/* The least memory.max, in bytes, of the process's control group and those around it (version 2);
 * UINT64_MAX: none says any. `root` is what /proc and /sys are found in: "". */
uint64_t memory_limit_of_group(const char *root);

#endif
