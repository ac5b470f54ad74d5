/* How many connections clients have of their own, and when one is given back. */
#ifndef NESTGUARD_PINNED_ROOM_H
#define NESTGUARD_PINNED_ROOM_H

#include "worker/client/client.h"

/* Room for so many more of the client's own, also as its host may have them (guard/fair_share.h);
 * the second gives up nobody's for that. False: own_connections are used up, as the third then
 * answers: -EBUSY. */
bool pinned_make_room(struct client *client, unsigned count);
bool pinned_has_room(const struct client *client, unsigned count);
int pinned_refuse_busy(struct client *client);
const char *pinned_count_busy(struct client *client); /* what is said then; it counts as said */

/* So many more of its own the client has now, or has no more. */
void pinned_count(struct client *client, unsigned count);
void pinned_discount(struct client *client, unsigned count);

/* Room for one over which a stranger's user and password are asked of the cache. Of these there are
 * half as many as places at most: however many guess, the others are left. Of that half hosts have
 * what they may have of all. The second: it is one,
 * from now on; the third: it is one like any other, if there is one. */
bool pinned_make_login_room(struct client *client);
void pinned_count_login(struct client *client);
void pinned_end_login(struct client *client);

/* Nothing is under way or left on its own connection, and it has one. What is held back of a client
 * that guesses is not under way: the cache has answered it. */
bool pinned_is_idle(const struct client *client);

/* Who looks for one looks again, if it is so: at the end of a turn, and once in a while. */
void pinned_note_idle(struct client *client);

/* Goes back to a shared connection. Nothing is under way on its own. */
void pinned_end(struct client *client);

/* Closes its own, which it has, unless it tracks by it. */
void pinned_give_back(struct client *client);

/* Nobody waits for what is before the first command for the own connection any more. */
void pinned_answer_fence(struct pinned *pinned);

/* None of pinned.waits is needed any more, and none is open but the own one. */
void pinned_forget_waits(struct pinned *pinned);

/* Whether all before the fence is answered, which is then not needed any more: it is forgotten. */
bool pinned_reach(struct client *client, struct reply_slot **fence);

/* Which of those that it tracks by (tracking.h) this is; NULL: none. */
struct pinned_track *pinned_track_of(const struct pinned *pinned, const struct upstream *upstream);

#endif
