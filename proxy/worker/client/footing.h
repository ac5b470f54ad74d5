/* What begins a state in a cluster (WATCH, a command that waits, the first in MULTI that has a key)
 * goes to the node that the map has for its key. Where that one says that the key is elsewhere,
 * nothing has begun, and it begins there:
 *
 *   WATCH k           ─▶ own connection to A: "ASK B"   ─▶ own to B: ASKING, WATCH k
 *   MULTI PING SET k  ─▶ own connection to A: "MOVED B" ─▶ own to B: MULTI, PING, SET k
 *
 * Until it is answered the client settles: there is nothing behind it to bring along. What comes
 * later goes where the state is. That node has begun it by then, and may still say that a key is
 * elsewhere: this is an error.
 */
#ifndef NESTGUARD_FOOTING_H
#define NESTGUARD_FOOTING_H

#include "base/span.h"
#include <stdbool.h>

struct client;

/* The command at hand begins the state, with this key. `say` says over the client's own
 * connection what stands before it there; NULL: nothing does. */
void footing_begin(struct client *client, struct span key, void (*say)(struct client *client));

/* It is answered, and another command is at hand: the state has begun, or has not. While its slot
 * is on its way each command is served alone, so that none overtakes another. */
void footing_go_on(struct client *client);

/* Whether the state began with a key of the same slot. */
bool footing_is_for(const struct client *client, struct span key);

/* Of such a key: whether the node that gives the slot away may still have it. Behind ASKING the
 * state's would answer for it all the same, as for one that nobody has. */
bool footing_may_lack(const struct client *client, struct span key);

/* Whether the client's own connection, which it has, leads to that node. */
bool footing_leads_to(const struct client *client, int node);

/* In a cluster: back to where a command of this key goes that is done in pieces, if the client was
 * led elsewhere meanwhile, also from a connection of its own that it has for this command. */
void footing_lead(struct client *client, struct span key);

/* Before what needs it on the own connection: the node gives away, or gets, the state's slot. */
void footing_precede(struct client *client);

#endif
