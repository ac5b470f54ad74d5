/* A large row at the head is not passed by smaller ones that would fit, or it might wait for ever.
 * An origin of which nobody waits begins anew, and has what it had lately for free: that is one row
 * at most for each time that it asks, and the loads' own lines remember it (loads_queue.h). Who
 * enters only sends a query, whose answer comes from the loop; who does not is answered at once,
 * which may send others: so nobody leaves or comes to wait while go_on() is at work.
 */
#include "database/row_lane.h"

/* Whoever finds the lane empty goes, however large. */
static void go_on(struct row_lane *lane)
{
    while (lane->first && (!lane->taken || lane->taken + lane->first->bytes <= lane->most)) {
        struct row_lane_place *place = lane->first;
        size_t bytes = place->bytes;
        lane->now = place->start;
        lane->first = place->next;
        lane->waiting--;
        if (!place->enter(place))
            continue;
        lane->taken += bytes;
        lane->inside++;
    }
}

/* Behind all of its origin, and behind the others whose turn comes no later. */
static void line_up(struct row_lane *lane, struct row_lane_place *place)
{
    struct row_lane_place **at = &lane->first;
    place->start = lane->now;
    for (const struct row_lane_place *other = lane->first; other; other = other->next)
        if (other->origin == place->origin)
            place->start = other->start + other->bytes;
    while (*at && (*at)->start <= place->start)
        at = &(*at)->next;
    place->next = *at;
    *at = place;
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    line_up(lane, place);
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
