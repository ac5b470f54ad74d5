/* From a member back to what it lives inside of. */
#ifndef NESTGUARD_CONTAINER_OF_H
#define NESTGUARD_CONTAINER_OF_H

#include <stddef.h>

#define container_of(pointer, type, member) ((type *)((char *)(pointer)-offsetof(type, member)))

#endif
