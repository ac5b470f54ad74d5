/* A round of the line may be long. What is looked for on a tour comes of no event, and is waited
 * for all the same: so the visits grow by as much as a tour is behind its time.
 *
 *   met │        ╱╲ all        so many by then, whatever the line is like;
 *       │     ╱                else AT_ONCE a visit
 *       └──────────▶ LONGEST_MS
 */
#include "worker/client/tour.h"

#include "base/clock.h"
#include "base/container_of.h"

#include <assert.h>

enum {
    AT_ONCE = 128, /* some tens of microseconds */
    LONGEST_MS = 500
};

static uint64_t due(const struct tour *tour)
{
    uint64_t ms = tour->now - tour->began;
    return ms < LONGEST_MS ? tour->count * ms / LONGEST_MS : tour->count;
}

/* Returns whether some are left. */
static bool meet_some(struct tour *tour)
{
    struct client *client = NULL;
    tour->now = clock_ms();
    uint64_t end = tour->met + AT_ONCE, before = tour->met;
    if (due(tour) > end)
        end = due(tour);
    while (tour->met < end && (client = roster_walk_next(&tour->walk))) {
        tour->meet(tour, client);
        tour->met++;
    }
    turn_worked(&tour->clients->serving->turn, tour->met - before);
    return client;
}

static void begin(struct tour *tour)
{
    tour->is_under_way = true;
    tour->began = clock_ms();
    tour->count = counter_read(&tour->clients->serving->counters.clients);
    tour->met = 0;
    roster_walk_begin(&tour->walk, tour->clients);
}

static void end(struct tour *tour)
{
    roster_walk_end(&tour->walk);
    tour->is_under_way = false;
    if (tour->end)
        tour->end(tour);
}

static void visit(struct turn_task *task)
{
    struct tour *tour = container_of(task, struct tour, visit);
    struct turn *turn = &tour->clients->serving->turn;
    if (meet_some(tour)) {
        turn_line_up(turn, task);
        return;
    }
    end(tour);
    if (!tour->again)
        return;
    tour->again = false;
    begin(tour);
    turn_line_up(turn, task);
}

void tour_begin(struct tour *tour)
{
    assert(!tour->is_under_way);
    tour->visit.run = visit; /* of TURN_READ, as zeroed */
    begin(tour);
    visit(&tour->visit);
}

void tour_repeat(struct tour *tour)
{
    if (tour->is_under_way)
        tour->again = true;
    else
        tour_begin(tour);
}
