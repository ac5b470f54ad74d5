/* What a client has asked of its connection, and the connection to the cache that it then has of
 * its own.
 *
 *   shared ──MULTI, SUBSCRIBE, BLPOP, SELECT of another db, ...──▶ own
 *     ◀───── no such state is left, and none was needed for a while ────
 *
 * While it has one, all its commands go over it: order needs no more thought.
 */
#ifndef NESTGUARD_PINNED_H
#define NESTGUARD_PINNED_H

#include "worker/client/pinned_room.h"

/* Gives the client a connection of its own, to which all that it sends from now on goes. 0, or
 * -EBUSY: own_connections are used up; then it has got the error as its reply. */
int pinned_begin(struct client *client);

/* The same for what changes the meaning of all that follows: refused, the client goes. What it has
 * sent behind would be done outside of the transaction, or in another database than it is for. */
int pinned_begin_state(struct client *client);

/* In a cluster the client has another one instead, to this node. Nothing is under way on the first.
 */
void pinned_begin_at(struct client *client, int node);

/* The same to log in as a user of the cache's own. Who has shown nobody yet who it is has it out of
 * the strangers' share (pinned_room.h), until it is that user, or has it for something else. */
int pinned_begin_login(struct client *client);

/* As a new client, but for the name: RESET. */
void pinned_reset(struct client *client);

/* The client is at the end of a turn: its own connection may go on once it is its turn. */
void pinned_flush(struct client *client);

/* What could be written is written: the own connection is read from, or waits for a client that
 * does not read. */
void pinned_pace(struct client *client);

/* Once in a while: ends what has taken too long, and what is not needed any more. */
void pinned_check(struct client *client, uint64_t now);

/* The cache is elsewhere by now: a connection that leads to the one before is given back as soon as
 * no state is left on it, or, when it is `late`, given up. */
void pinned_follow(struct client *client, bool late);

/* The client goes, and its replies are abandoned. */
void pinned_finish(struct client *client);

/* Something may come at any time, or never: with a client that has closed its sending side there is
 * no point in waiting for that. */
bool pinned_waits(const struct client *client);
/* Of that: a command of its own waits, and may do so for ever. */
bool pinned_is_blocked(const struct client *client);

/* How many subscriptions of its kind an UNSUBSCRIBE, PUNSUBSCRIBE or SUNSUBSCRIBE may end. */
unsigned pinned_subscriptions(const struct pinned *pinned, const char *name);

#endif
