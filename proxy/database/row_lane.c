/* First come, first served: a large row at the head is not passed by smaller ones that would fit,
 * or it might wait for ever. Who enters only sends a query, whose answer comes from the loop; who
 * does not is answered at once, which may send others: so nobody leaves or comes to wait while
 * go_on() is at work.
 */
#include "database/row_lane.h"

/* Whoever finds the lane empty goes, however large. */
static void go_on(struct row_lane *lane)
{
    while (lane->first && (!lane->taken || lane->taken + lane->first->bytes <= lane->most)) {
        struct row_lane_place *place = lane->first;
        size_t bytes = place->bytes;
        lane->first = place->next;
        lane->waiting--;
        if (!place->enter(place))
            continue;
        lane->taken += bytes;
        lane->inside++;
    }
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    place->next = NULL;
    *(lane->first ? &lane->last->next : &lane->first) = place;
    lane->last = place;
    size_t before = lane->waiting++;
    go_on(lane);
    if (lane->waiting > before && lane->on_wait)
        lane->on_wait(lane->arg);
}

void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place)
{
    lane->taken -= place->bytes;
    lane->inside--;
    go_on(lane);
}
