/* A large row whose turn it is is not passed by smaller ones that would fit, or it might wait for
 * ever: whoever comes is behind it, from wherever. And no origin has its next turn before each that
 * waits has had one, nor a client before each of its origin that does. So a row waits for no more
 * turns than there are origins, times clients of its own, times rows of its client up to itself. By
 * bytes they may differ, as far as max_value.
 *
 * But a row that nobody wants is no reason to wait: it is forgotten when its turn comes, whether
 * there is room for it or not, and its client has its turn still. Whether it is wanted may change
 * either way until then; it is looked at each time that anybody comes or leaves, and once in a
 * while (row_lane_go_on()), since neither may happen for as long as a query takes.
 *
 * Who enters only sends a query, whose answer comes from the loop; who is forgotten is answered at
 * once, which may send others: so nobody leaves or comes to wait while row_lane_go_on() is at work.
 */
#include "database/row_lane.h"

#include "base/container_of.h"
#include "base/memory.h"

#include <stdlib.h>

/* An origin, or a client of one: there for as long as something of it waits. There are a few
 * thousand at most, as many as may wait here, so that one of them is looked for one by one. */
struct party {
    struct row_lane_turn turn;
    uint64_t name;
    struct row_lane_turns below; /* an origin's clients, or a client's places */
};

static struct party *party_at(struct row_lane_turn *turn)
{
    return turn ? container_of(turn, struct party, turn) : NULL;
}

static void append(struct row_lane_turns *turns, struct row_lane_turn *turn)
{
    turn->next = NULL;
    *(turns->first ? &turns->last->next : &turns->first) = turn;
    turns->last = turn;
}

static struct row_lane_turn *take(struct row_lane_turns *turns)
{
    struct row_lane_turn *turn = turns->first;
    turns->first = turn->next;
    return turn;
}

/* One that begins is behind all the others. */
static struct party *party_of(struct row_lane_turns *parties, uint64_t name)
{
    struct party *party = party_at(parties->first);
    while (party && party->name != name)
        party = party_at(party->turn.next);
    if (party)
        return party;
    party = xcalloc(1, sizeof *party);
    party->name = name;
    append(parties, &party->turn);
    return party;
}

/* The first one's first has gone, with their turn or without: then that is still theirs. */
static void pass_turn(struct row_lane_turns *parties, bool had_turn)
{
    struct party *first = party_at(parties->first);
    if (!first->below.first)
        free(party_at(take(parties)));
    else if (had_turn)
        append(parties, take(parties));
}

static void line_up(struct row_lane *lane, struct row_lane_place *place)
{
    struct row_lane_asker asker = {0};
    if (lane->asker_of)
        asker = lane->asker_of(place->load);
    struct party *origin = party_of(&lane->origins, asker.origin);
    struct party *client = party_of(&origin->below, (uintptr_t)asker.client);
    append(&client->below, &place->turn);
    lane->waiting++;
}

/* Whose turn it is; NULL: nobody waits. */
static struct row_lane_place *next_place(const struct row_lane *lane)
{
    const struct party *origin = party_at(lane->origins.first);
    if (!origin)
        return NULL;
    const struct party *client = party_at(origin->below.first);
    return container_of(client->below.first, struct row_lane_place, turn);
}

static void take_next(struct row_lane *lane, bool has_turn)
{
    struct party *origin = party_at(lane->origins.first);
    struct party *client = party_at(origin->below.first);
    take(&client->below);
    pass_turn(&origin->below, has_turn);
    pass_turn(&lane->origins, has_turn);
    lane->waiting--;
}

static bool is_wanted(const struct row_lane *lane, const struct row_lane_place *place)
{
    return !lane->wants || lane->wants(place->load);
}

/* Whoever finds the lane empty goes, however large. */
static bool has_room(const struct row_lane *lane, const struct row_lane_place *place)
{
    return !lane->taken || lane->taken + place->bytes <= lane->most;
}

static void enter(struct row_lane *lane, struct row_lane_place *place)
{
    lane->taken += place->bytes;
    lane->inside++;
    if (lane->pay)
        lane->pay(lane->arg, place->load, place->bytes);
    place->enter(place);
}

void row_lane_go_on(struct row_lane *lane)
{
    struct row_lane_place *place;
    while ((place = next_place(lane))) {
        bool has_turn = is_wanted(lane, place);
        if (has_turn && !has_room(lane, place))
            break;
        take_next(lane, has_turn);
        if (has_turn)
            enter(lane, place);
        else
            place->forget(place);
    }
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    line_up(lane, place);
    row_lane_go_on(lane);
    if (lane->on_come)
        lane->on_come(lane->arg);
}

void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place)
{
    lane->taken -= place->bytes;
    lane->inside--;
    row_lane_go_on(lane);
}
