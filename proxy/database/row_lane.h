/* The way of large rows: as many at a time as their bytes allow. What the small ones of a pool's
 * queries can take in all is little; of large ones each may be as much as all of them. Who waits
 * here asks the database for nothing.
 *
 * Origins have turns, one row each. So have the clients of an origin when it has its own, and the
 * rows of a client go in the order of asking.
 *
 *   origin ─────────────▶ origin ─▶ origin ─▶      the first one's first one's first place is next,
 *     client ─▶ client      client    client       and nobody passes it
 *       place     place       place     place
 *       place                           place
 */
#ifndef NESTGUARD_ROW_LANE_H
#define NESTGUARD_ROW_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Who share their turns: clients of one origin those of that, and loads of one client its own. */
struct row_lane_asker {
    uint64_t origin;
    const void *client; /* not to be followed */
};

struct row_lane_turn {
    struct row_lane_turn *next;
};

/* Who take turns, the next one first; zeroed there is nobody. */
struct row_lane_turns {
    struct row_lane_turn *first, *last;
};

struct row_lane_place {
    size_t bytes;
    const void *load;                             /* what the lane's callbacks are asked about */
    void (*enter)(struct row_lane_place *place);  /* its turn has come, and it has room */
    void (*forget)(struct row_lane_place *place); /* its turn has come, and nobody wants the row */
    /* The lane's, while it waits: for whom, and among whose. */
    struct row_lane_asker asker;
    struct row_lane_turn turn;
    bool waits;
};

/* Up to `arg` it is set by its owner; the rest is zeroed. Where a callback is NULL, all loads are
 * of one asker, all are wanted, nobody pays, nobody is told. */
struct row_lane {
    size_t most;
    struct row_lane_asker (*asker_of)(const void *load);
    bool (*wants)(const void *load);
    /* Before so many bytes are read: whose time is over when they come has had them read all the
     * same. */
    void (*pay)(void *arg, const void *load, size_t bytes);
    void (*on_come)(void *arg); /* one more waits, or is inside, or was forgotten */
    void *arg;
    size_t taken;
    struct row_lane_turns origins; /* of those who wait */
    size_t waiting, inside;
};

/* Calls place->enter() or place->forget(): now, or when its turn has come. One that is larger than
 * all there is goes alone. */
void row_lane_wait(struct row_lane *lane, struct row_lane_place *place);

/* Somebody else asks for the same row: the place is among his if its turn comes sooner so. Nothing
 * else happens, and nothing at all if it does not wait, as before it has come. */
void row_lane_join(struct row_lane *lane, struct row_lane_place *place,
                   struct row_lane_asker asker);

/* Of one that has entered. */
void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place);

/* Some may be wanted no more, whose turns others may have. */
void row_lane_go_on(struct row_lane *lane);

#endif
