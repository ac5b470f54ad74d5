/* First come, first served: a large row at the head is not passed by smaller ones that would fit,
 * or it might wait for ever. enter() only sends a query, whose answer comes from the loop: so
 * nobody leaves while go_on() is at work.
 */
#include "database/row_lane.h"

/* Whoever finds the lane empty goes, however large. */
static void go_on(struct row_lane *lane)
{
    while (lane->first && (!lane->taken || lane->taken + lane->first->bytes <= lane->most)) {
        struct row_lane_place *place = lane->first;
        lane->first = place->next;
        lane->taken += place->bytes;
        place->enter(place);
    }
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    place->next = NULL;
    *(lane->first ? &lane->last->next : &lane->first) = place;
    lane->last = place;
    go_on(lane);
}

void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place)
{
    lane->taken -= place->bytes;
    go_on(lane);
}
