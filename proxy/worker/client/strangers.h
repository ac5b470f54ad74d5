/* Clients that have not shown yet who they are: in the handshake of TLS, or before AUTH. They have
 * places and time of their own, so that they keep nobody else out; and who guesses waits for each
 * answer.
 */
#ifndef NESTGUARD_STRANGERS_H
#define NESTGUARD_STRANGERS_H

#include "worker/client/client.h"

/* The client has come, or what it has shown has changed: counts it in or out. When there are too
 * many, one goes that is a stranger for longest: of the host that has most of them. */
void strangers_review(struct client *client);

/* Once in a while: those go that have taken too long. */
void strangers_check(struct clients *clients, uint64_t now);

/* A wrong password, or a user that the cache does not let in. The error is in slot->reply, which
 * waits for one answer more, and is held back for some time, longer each time. */
void strangers_refuse(struct client *client, struct reply_slot *slot);

/* Once in a while: what has been held back for long enough lines up to be let go of. */
void strangers_release(struct client *client, uint64_t now);

/* The client goes: nothing is held back any more. */
void strangers_forget(struct client *client);

#endif
