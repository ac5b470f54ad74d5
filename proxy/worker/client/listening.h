/* Subscriptions in a cluster. A shard channel is heard at its slot's node, any other channel or
 * pattern at every node; clients see one server, where a connection hears all that it likes. So
 * what a client has subscribed to is kept here by name, and it has one connection more to each
 * node where some of that is heard, over which nothing else goes:
 *
 *   client ─┬─ SSUBSCRIBE a, c ─▶ node 1 ─┐
 *           └─ SSUBSCRIBE b ───▶ node 2 ──┴─▶ messages ─▶ client
 *
 * When a slot moves, or a node is lost, silent or none of the cluster any more, what was heard
 * there is subscribed to again, at the node that has it now. The client is not told: what was
 * published in between it has missed, as behind a lost connection. One that could not be had again
 * for a minute, or that is refused, closes the client's connection: nobody is deaf without knowing.
 *
 * They are none of those that tracking.h keeps: what a client asks goes over these, and each of
 * them may be its own (pinned.h) for a while.
 *
 * With one server the client's own connection is enough, and all of this is off.
 */
#ifndef NESTGUARD_LISTENING_H
#define NESTGUARD_LISTENING_H

#include "worker/client/client.h"

/* RESET, or the client goes: no more is heard. */
void listening_forget(struct client *client);

/* What the names take, and what these connections hold, in bytes. */
size_t listening_bytes(const struct client *client);

/* Slots, or nodes, may be elsewhere than they were. */
void listening_follow(struct client *client);

/* As pinned_pace(), pinned_check() and pinned_follow(). */
void listening_read(struct client *client, bool wanted);
void listening_check(struct client *client, uint64_t now);
void listening_move(struct client *client, bool late);

#endif
