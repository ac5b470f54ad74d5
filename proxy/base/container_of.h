/* From a member back to what it lives inside of: how a node of a list or map, a libuv handle or a
 * callback's argument leads to the object that embeds it, without an allocation or a pointer of its
 * own. `pointer` must not be NULL.
 */
#ifndef NESTGUARD_CONTAINER_OF_H
#define NESTGUARD_CONTAINER_OF_H

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
