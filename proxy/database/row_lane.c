/* A large row whose turn it is is not passed by smaller ones that would fit, or it might wait for
 * ever: whoever comes is behind it, from wherever. And no origin has its next turn before each that
 * waits has had one: so a row waits for one of each other origin, and as often again for each of
 * its own that was there before it. By bytes they may differ, as far as max_value.
 *
 * Who enters only sends a query, whose answer comes from the loop; who does not is answered at
 * once, which may send others: so nobody leaves or comes to wait while go_on() is at work.
 */
#include "database/row_lane.h"

/* The next of its origin, if there is one, is in its place. */
static struct row_lane_place *take_first(struct row_lane *lane)
{
    struct row_lane_place *first = lane->first, *heir = first->behind;
    lane->first = heir ? heir : first->next;
    if (heir) {
        heir->next = first->next;
        heir->last = first->last;
    }
    if (lane->last == first)
        lane->last = heir;
    lane->waiting--;
    return first;
}

/* The first origin has had its turn. */
static void pass_turn(struct row_lane *lane)
{
    struct row_lane_place *first = lane->first;
    if (!first->next)
        return;
    lane->first = first->next;
    first->next = NULL;
    lane->last->next = first;
    lane->last = first;
}

/* Whoever finds the lane empty goes, however large. Who does not enter has had no turn, and may be
 * freed by then. */
static void go_on(struct row_lane *lane)
{
    while (lane->first && (!lane->taken || lane->taken + lane->first->bytes <= lane->most)) {
        struct row_lane_place *place = take_first(lane);
        size_t bytes = place->bytes;
        bool has_heir = place->behind;
        if (!place->enter(place))
            continue;
        lane->taken += bytes;
        lane->inside++;
        if (has_heir)
            pass_turn(lane);
    }
}

static struct row_lane_place *first_of(const struct row_lane *lane, uint64_t origin)
{
    struct row_lane_place *first = lane->first;
    while (first && first->origin != origin)
        first = first->next;
    return first;
}

static void line_up(struct row_lane *lane, struct row_lane_place *place)
{
    struct row_lane_place *first = first_of(lane, place->origin);
    place->behind = place->next = NULL;
    place->last = place;
    if (first) {
        first->last->behind = place;
        first->last = place;
    } else {
        *(lane->first ? &lane->last->next : &lane->first) = place;
        lane->last = place;
    }
    lane->waiting++;
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    size_t before = lane->waiting;
    line_up(lane, place);
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
