/* The way of large rows: as many at a time as their bytes allow. What the small ones of a pool's
 * queries can take in all is little; of large ones each may be as much as all of them. Who waits
 * here asks the database for nothing.
 *
 * Origins have turns, one row each; those of one origin go in the order of asking.
 *
 *   origin ─▶ origin ─▶ origin ─▶      the first one's first place is next, and nobody passes it
 *     place     place     place
 *     place               place
 */
#ifndef NESTGUARD_ROW_LANE_H
#define NESTGUARD_ROW_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct row_lane_place {
    size_t bytes;
    uint64_t origin; /* who share their turns */
    /* Its turn has come. False: nobody wants the row any more, and the place is forgotten. */
    bool (*enter)(struct row_lane_place *place);
    /* The lane's: of one origin, and of its first, the first of the next origin and its own last.
     */
    struct row_lane_place *behind, *next, *last;
};

/* The first five are set by its owner; the rest is zeroed. */
struct row_lane {
    size_t most;
    /* Of who waits (rows.h): from where the row is asked for (NULL: all are of one origin); and
     * when it is about to be read, whether anybody wants it, who pays for so many bytes (NULL: all
     * are wanted). */
    uint64_t (*origin_of)(const void *load);
    bool (*admit)(void *arg, const void *load, size_t bytes);
    void (*on_wait)(void *arg); /* one more has to wait; may be NULL */
    void *arg;
    size_t taken;
    struct row_lane_place *first, *last; /* who wait: the first of each origin */
    size_t waiting, inside;
};

/* Calls place->enter(): now, or when there is room. One that is larger than all there is goes
 * alone.
 */
void row_lane_wait(struct row_lane *lane, struct row_lane_place *place);

/* Of one that has entered. */
void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place);

#endif
