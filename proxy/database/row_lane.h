/* The way of large rows: as many at a time as their bytes allow. What the small ones of a pool's
 * queries can take in all is little; of large ones each may be as much as all of them. Who waits
 * here asks the database for nothing.
 *
 * Those who come from one place (`origin`) wait for each other in the order of asking, and have
 * the same share of the way as those from any other: start-time fair queueing (Goyal, Vin and Cheng
 * 1996), by bytes.
 */
#ifndef NESTGUARD_ROW_LANE_H
#define NESTGUARD_ROW_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_lane_place {
    struct row_lane_place *next;
    size_t bytes;
    uint64_t origin; /* who share their turns */
    uint64_t start;  /* the lane's: in bytes that one origin has had when it is this one's turn */
    /* Its turn has come. False: nobody wants the row any more, and the place is forgotten. */
    bool (*enter)(struct row_lane_place *place);
};

/* The first five are set by its owner; the rest is zeroed. */
struct row_lane {
    size_t most;
    /* Whose bytes the load's are, who pays for them whether he waits for them or not: the origin.
     * NULL: all are of one. */
    uint64_t (*charge)(void *arg, const void *load, size_t bytes);
    bool (*is_wanted)(const void *load); /* of who waits (rows.h); NULL: all are */
    void (*on_wait)(void *arg);          /* one more has to wait; may be NULL */
    void *arg;
    size_t taken;
    uint64_t now;                 /* the start of who entered last */
    struct row_lane_place *first; /* who wait, by their starts */
    size_t waiting, inside;
};

/* Calls place->enter(): now, or when there is room. One that is larger than all there is goes
 * alone.
 */
void row_lane_wait(struct row_lane *lane, struct row_lane_place *place);

/* Of one that has entered. */
void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place);

#endif
