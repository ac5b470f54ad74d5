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

static void take_out(struct row_lane_turns *turns, struct row_lane_turn *turn)
{
    struct row_lane_turn *before = NULL, **at = &turns->first;
    while (*at != turn) {
        before = *at;
        at = &before->next;
    }
    *at = turn->next;
    if (turns->last == turn)
        turns->last = before;
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

/* One of it has gone, with its turn or without: then that is still its own. */
static void pass_turn(struct row_lane_turns *parties, struct party *party, bool had_turn)
{
    bool has_ended = !party->below.first;
    if (has_ended || had_turn)
        take_out(parties, &party->turn);
    if (has_ended)
        free(party);
    else if (had_turn)
        append(parties, &party->turn);
}

static void line_up(struct row_lane *lane, struct row_lane_place *place,
                    struct row_lane_asker asker)
{
    struct party *origin = party_of(&lane->origins, asker.origin);
    struct party *client = party_of(&origin->below, (uintptr_t)asker.client);
    append(&client->below, &place->turn);
    place->asker = asker;
    place->waits = true;
    lane->waiting++;
}

static void leave_line(struct row_lane *lane, struct row_lane_place *place, bool has_turn)
{
    struct party *origin = party_of(&lane->origins, place->asker.origin);
    struct party *client = party_of(&origin->below, (uintptr_t)place->asker.client);
    take_out(&client->below, &place->turn);
    pass_turn(&origin->below, client, has_turn);
    pass_turn(&lane->origins, origin, has_turn);
    place->waits = false;
    lane->waiting--;
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
        leave_line(lane, place, has_turn);
        if (has_turn)
            enter(lane, place);
        else
            place->forget(place);
    }
}

void row_lane_wait(struct row_lane *lane, struct row_lane_place *place)
{
    struct row_lane_asker asker = {0};
    if (lane->asker_of)
        asker = lane->asker_of(place->load);
    line_up(lane, place, asker);
    row_lane_go_on(lane);
    if (lane->on_come)
        lane->on_come(lane->arg);
}

/* ---- who joins ---- */

/* Where a party is in its round, itself counted; behind all others if it has yet to begin. */
struct standing {
    const struct party *party; /* NULL: then */
    size_t at, count;
};

static struct standing standing_of(const struct row_lane_turns *parties, uint64_t name)
{
    struct standing standing = {0};
    const struct party *party = party_at(parties->first);
    for (; party; party = party_at(party->turn.next), standing.count++)
        if (party->name == name) {
            standing.party = party;
            standing.at = standing.count;
        }
    if (!standing.party)
        standing.at = standing.count++;
    return standing;
}

/* NULL: how many there are. */
static size_t count_before(const struct row_lane_turns *turns, const struct row_lane_turn *turn)
{
    size_t count = 0;
    for (const struct row_lane_turn *at = turns->first; at != turn; at = at->next)
        count++;
    return count;
}

/* How many turns are before the asker's that this one is (NULL: the one behind all of his), if
 * nobody comes, and nobody's places end. */
static size_t turns_before(const struct row_lane *lane, struct row_lane_asker asker,
                           const struct row_lane_turn *turn)
{
    static const struct row_lane_turns nobody;
    struct standing origin = standing_of(&lane->origins, asker.origin);
    struct standing client =
        standing_of(origin.party ? &origin.party->below : &nobody, (uintptr_t)asker.client);
    size_t own = client.party ? count_before(&client.party->below, turn) : 0;
    return (own * client.count + client.at) * origin.count + origin.at;
}

/* Whose turn it is has none before it, and stays: so nobody else's is next by this. */
void row_lane_join(struct row_lane *lane, struct row_lane_place *place, struct row_lane_asker asker)
{
    if (!place->waits ||
        turns_before(lane, asker, NULL) >= turns_before(lane, place->asker, &place->turn))
        return;
    leave_line(lane, place, false);
    line_up(lane, place, asker);
}

void row_lane_leave(struct row_lane *lane, const struct row_lane_place *place)
{
    lane->taken -= place->bytes;
    lane->inside--;
    row_lane_go_on(lane);
}
