/* How many more entries there are of those that a table cannot or need not hold once more: a map
 * from a number, which says what is alike, to a count. It grows; readers of the table never need
 * it. Private to filters/.
 */
#ifndef NESTGUARD_SURPLUS_H
#define NESTGUARD_SURPLUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct surplus_cell {
    uint64_t number; /* 0: free */
    uint64_t count;  /* 0: was in use */
};

/* All zero is an empty one. The counts in `cells` may be anything, as from a damaged file: then
 * answers are wrong, but nothing else. */
struct surplus {
    struct surplus_cell *cells;
    size_t size; /* 0 or a power of two */
    size_t used; /* cells that are not free */
};

void surplus_finish(struct surplus *surplus);

/* One more of that number, which is not 0. False when it would have to take more than max_bytes, or
 * memory that is not there. */
bool surplus_add(struct surplus *surplus, uint64_t number, size_t max_bytes);

/* One less of that number; false when there is none. */
bool surplus_take(struct surplus *surplus, uint64_t number);

/* Makes it twice as large. False as with surplus_add(). */
bool surplus_grow(struct surplus *surplus, size_t max_bytes);

/* How often it was made larger since it was empty: 0 or more. */
unsigned surplus_doublings(const struct surplus *surplus);

size_t surplus_bytes(const struct surplus *surplus);

#endif
