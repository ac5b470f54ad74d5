/* A share is a count and the time since when it is counted, no list of hints: when one ends nobody
 * looks whose it was. So what a client has taken is forgotten all together, when the first of it
 * has had its time.
 */
#include "guard/hint_share.h"

#include "guard/fair_share.h"

enum { FEW = 1000 }; /* a thousandth of the table */

/* What was counted before has ended by now, or will before as much again is taken. */
bool hint_share_has_ended(const struct hint_share *share, const struct hint_room *room)
{
    return room->ttl_ms ? room->now - share->since >= room->ttl_ms
                        : room->generation != share->generation;
}

static void start_anew(struct hint_share *share, const struct hint_room *room)
{
    if (!hint_share_has_ended(share, room))
        return;
    *share = (struct hint_share){.since = room->now, .generation = room->generation};
}

/* One client alone never takes more than half. Of what a host has taken some may be free again, so
 * it has no more than all have. */
bool hint_share_take(struct hint_share *share, struct hint_share *host,
                     const struct hint_room *room, size_t count)
{
    start_anew(share, room);
    start_anew(host, room);
    size_t own = share->count + count;
    size_t held = host->count < room->used ? host->count : room->used;
    struct fair_share all = {
        .most = room->most, .used = room->used + count, .host = held + count, .few = FEW};
    if (own > fair_share_part(room->most, 2) || !fair_share_allows(&all))
        return false;
    share->count = own;
    host->count += count;
    return true;
}

void hint_share_overtake(struct hint_share *share, const struct hint_room *room, size_t count)
{
    start_anew(share, room);
    share->count += count;
}

void hint_share_return(struct hint_share *share, size_t count)
{
    share->count -= count < share->count ? count : share->count;
}

bool hint_room_is_scarce(size_t used, size_t most)
{
    return used >= fair_share_part(most, 2);
}
