/* Who may add how many hints to the table of overrides. A hint that finds no place could only
 * be made up for by rejecting nothing at all; so whoever would write more new keys than there is
 * room for is told so before anything is written. Of hosts, as of all that they share
 * (fair_share.h).
 *
 *   max_hints  ├──────── one client ────────┼──── one host ────┼── others ──┤
 *              0                           1/2                3/4           1
 */
#ifndef NESTGUARD_HINT_SHARE_H
#define NESTGUARD_HINT_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A client's, or that of all clients of its host. Zeroed: it has none. */
struct hint_share {
    uint64_t since;      /* when they began to be counted */
    uint64_t generation; /* and what was settled then */
    size_t count;        /* of places taken since, less those returned; see override_places() */
};

/* As it is now. */
struct hint_room {
    size_t used, most;   /* places in the table; max_hints */
    uint64_t now;        /* clock_ms() */
    uint64_t ttl_ms;     /* after which hints end by themselves; 0: with a generation */
    uint64_t generation; /* that the one in force has settled; see overrides.h */
};

/* Takes places for so many more of a client's and of its host's, or says that there are not enough.
 */
bool hint_share_take(struct hint_share *share, struct hint_share *host,
                     const struct hint_room *room, size_t count);

/* Takes them though there may not be enough: who had them noted cannot be refused any more. */
void hint_share_overtake(struct hint_share *share, const struct hint_room *room, size_t count);

/* Of the last ones taken so many were not needed. */
void hint_share_return(struct hint_share *share, size_t count);

/* What was taken counts no more. */
bool hint_share_has_ended(const struct hint_share *share, const struct hint_room *room);

/* Whether so much of the table is used that it should be emptied by a new generation. */
bool hint_room_is_scarce(size_t used, size_t most);

#endif
