/* The way of large rows: as many at a time as their bytes allow, in the order of asking. What the
 * small ones of a pool's queries can take in all is little; of large ones each may be as much as
 * all of them.
 */
#ifndef NESTGUARD_ROW_LANE_H
#define NESTGUARD_ROW_LANE_H

#include <stddef.h>

struct row_lane_place {
    struct row_lane_place *next;
    size_t bytes;
    void (*enter)(struct row_lane_place *place);
};

/* `most` is set by its owner; the rest is zeroed. */
struct row_lane {
    size_t most, taken;
    struct row_lane_place *first, *last; /* who wait */
};

/* Calls place->enter(): now, or when there is room. One that is larger than all there is goes
 * alone.
 */
void row_lane_wait(struct row_lane *lane, struct row_lane_place *place);

/* Of one that has entered. */
void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place);

#endif
