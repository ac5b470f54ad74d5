/* Open addressing with linear probing (Knuth, The Art of Computer Programming 3, section 6.4). What
 * is counted down to nothing keeps its cell until the map is next made anew. */
#include "filters/cuckoo/surplus.h"

#include <stdlib.h>

enum { FIRST_SIZE = 16 };

void surplus_finish(struct surplus *surplus)
{
    free(surplus->cells);
    *surplus = (struct surplus){0};
}

/* The numbers come from keyed hashes; multiplying spreads those that share their high bits. */
static size_t home(const struct surplus *surplus, uint64_t number)
{
    uint64_t mixed = (number ^ number >> 32) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(mixed >> 32) & (surplus->size - 1);
}

/* The cell of a number, or the free one where it would go; NULL when there is neither. A quarter of
 * the cells is free, so the walk is short; that it ends in any case is for maps from damaged files.
 */
static struct surplus_cell *find(const struct surplus *surplus, uint64_t number)
{
    for (size_t i = 0; i < surplus->size; i++) {
        struct surplus_cell *cell =
            &surplus->cells[(home(surplus, number) + i) & (surplus->size - 1)];
        if (cell->number == number || cell->number == 0)
            return cell;
    }
    return NULL;
}

/* What was counted down to nothing is left behind. The old map stays as it was if there is no
 * memory for the new one. */
static bool rebuild(struct surplus *surplus, size_t size, size_t max_bytes)
{
    if (size > max_bytes / sizeof *surplus->cells)
        return false;
    struct surplus old = *surplus;
    struct surplus_cell *cells = calloc(size, sizeof *cells);
    if (!cells)
        return false;
    *surplus = (struct surplus){.cells = cells, .size = size};
    for (size_t i = 0; i < old.size; i++) {
        if (old.cells[i].number == 0 || old.cells[i].count == 0)
            continue;
        *find(surplus, old.cells[i].number) = old.cells[i];
        surplus->used++;
    }
    free(old.cells);
    return true;
}

bool surplus_grow(struct surplus *surplus, size_t max_bytes)
{
    return rebuild(surplus, surplus->size ? 2 * surplus->size : FIRST_SIZE, max_bytes);
}

static size_t in_use(const struct surplus *surplus)
{
    size_t counted = 0;
    for (size_t i = 0; i < surplus->size; i++)
        counted += surplus->cells[i].count != 0;
    return counted;
}

/* Full to three quarters: larger, or only rid of what is not in use if that is half of it. */
static bool make_room(struct surplus *surplus, size_t max_bytes)
{
    if (surplus->size && in_use(surplus) < surplus->size / 8 * 3)
        return rebuild(surplus, surplus->size, max_bytes);
    return surplus_grow(surplus, max_bytes);
}

bool surplus_add(struct surplus *surplus, uint64_t number, size_t max_bytes)
{
    struct surplus_cell *cell = find(surplus, number);
    if (!cell || cell->number == 0) {
        if (surplus->used >= surplus->size / 4 * 3 && !make_room(surplus, max_bytes))
            return false;
        cell = find(surplus, number);
        if (!cell)
            return false;
        *cell = (struct surplus_cell){.number = number};
        surplus->used++;
    }
    cell->count++;
    return true;
}

bool surplus_take(struct surplus *surplus, uint64_t number)
{
    struct surplus_cell *cell = find(surplus, number);
    if (!cell || cell->number == 0 || cell->count == 0)
        return false;
    cell->count--;
    return true;
}

unsigned surplus_doublings(const struct surplus *surplus)
{
    unsigned doublings = 0;
    for (size_t size = surplus->size; size >= FIRST_SIZE; size /= 2)
        doublings++;
    return doublings;
}

size_t surplus_bytes(const struct surplus *surplus)
{
    return surplus->size * sizeof *surplus->cells;
}
