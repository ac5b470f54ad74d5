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

#include "resp/pubsub.h"
#include "worker/client/client.h"

/* What a command names. `kept`: where that begins in the client's input, one bulk after the other,
 * which is for this command alone and goes over to it with many names; NULL: it does not stay. */
struct listening_words {
    const struct span *names;
    size_t count;
    const char *kept;
};

/* SUBSCRIBE, PSUBSCRIBE or SSUBSCRIBE: all of them, or an error and none. And what ends them;
 * `count` is 0: all of the family. Nothing of the client's is under way, and it settles. */
void listening_begin(struct client *client, enum pubsub_family family,
                     const struct listening_words *words);
void listening_end(struct client *client, enum pubsub_family family,
                   const struct listening_words *words);

/* Whether a command with so many names is served in pieces. */
bool listening_has_pieces(size_t names);

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
