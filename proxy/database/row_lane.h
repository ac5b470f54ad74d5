/* The way of large rows: as many at a time as their bytes allow, in the order of asking. What the
 * small ones of a pool's queries can take in all is little; of large ones each may be as much as
 * all of them. Who waits here asks the database for nothing.
 */
#ifndef NESTGUARD_ROW_LANE_H
#define NESTGUARD_ROW_LANE_H

#include <stdbool.h>
#include <stddef.h>

struct row_lane_place {
    struct row_lane_place *next;
    size_t bytes;
    /* Its turn has come. False: nobody wants the row any more, and the place is forgotten. */
    bool (*enter)(struct row_lane_place *place);
};

/* The first four are set by its owner; the rest is zeroed. */
struct row_lane {
    size_t most;
    bool (*is_wanted)(const void *load); /* of who waits (rows.h); NULL: all are */
    void (*on_wait)(void *arg);          /* one more has to wait; may be NULL */
    void *arg;
    size_t taken;
    struct row_lane_place *first, *last; /* who wait */
    size_t waiting, inside;
};

/* Calls place->enter(): now, or when there is room. One that is larger than all there is goes
 * alone.
 */
void row_lane_wait(struct row_lane *lane, struct row_lane_place *place);

/* Of one that has entered. */
void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place);

#endif
