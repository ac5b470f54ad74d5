/* CLIENT TRACKING in a cluster. A node tells of a key on the connection that has read it: so a
 * client that tracks has one of its own to each node that it asks, and all that it asks goes over
 * these; with BCAST one to each primary, whether it asks there or not.
 *
 *   client ─┬─ CLIENT TRACKING ON ... in its greeting ─▶ node 1 ─┐
 *           └─ likewise ─▶ node 2 ───────────────────────────────┴─▶ invalidations ─▶ client
 *
 * One that is lost may have had something to tell, and a slot that has moved may change unseen at
 * the node that had it: then the client is told that everything may have changed. One of them may
 * be `pinned.own` for a while, when there is state on it.
 *
 * With one server the client's own connection is enough, and all of this is off.
 */
#ifndef NESTGUARD_TRACKING_H
#define NESTGUARD_TRACKING_H

#include "worker/client/client.h"

/* In a cluster. */
bool tracking_is_on(const struct client *client);

/* What it was asked to be by `pinned.tracking.asked` is in force at the own connection: the others
 * begin so from now on. With BCAST, `slot` waits for them: each answers a request of it whose index
 * is not 0. */
void tracking_begin(struct client *client, struct reply_slot *slot);

/* It is off, or to be: no more is heard of it. */
void tracking_end(struct client *client);

/* The client speaks the other protocol by now. */
void tracking_renew(struct client *client);

/* Where it is on, there is a connection to that node from now on (client_track_to()). 0, or -EBUSY:
 * own_connections are used up. */
int tracking_open(struct client *client, int node);

/* Whether it is one of them that is used. */
bool tracking_has(const struct client *client, const struct upstream *upstream);

/* What was said by CLIENT CACHING goes before what is sent next to client->upstream. */
void tracking_precede(struct client *client);

/* Everything that the client has cached, or will have read by what is under way, may have changed.
 */
void tracking_invalidate(struct client *client);

/* What comes unasked on one of the client's connections; NULL: behind all that is under way. */
void tracking_push(struct client *client, struct upstream *upstream, struct span bytes);

/* Whether the client is to have what this one tells. */
bool tracking_hears(const struct client *client, const struct upstream *upstream);

/* As members of struct upstream_owner; the first two do nothing for what is none of them. */
void tracking_lose(struct client *client, struct upstream *upstream);
void tracking_is_up(struct client *client, struct upstream *upstream);
struct upstream *tracking_elsewhere(struct client *client, struct upstream *upstream, int node,
                                    bool *asks);

/* Keys may be elsewhere than they were. */
void tracking_follow(struct client *client);

/* As pinned_pace(), pinned_check(), pinned_follow() and pinned_finish(). */
void tracking_read(struct client *client, bool wanted);
void tracking_check(struct client *client, uint64_t now);
void tracking_move(struct client *client, bool late);
void tracking_finish(struct client *client);

#endif
