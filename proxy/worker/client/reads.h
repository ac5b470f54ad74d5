/* What a client that reads from replicas may rely on, as on one server:
 *
 *   a lookup at a replica ─ a write behind it ─▶ the write waits until the lookup is answered
 *   a write ─ answered ─ cache_max_lag ─▶ lookups at replicas again; until then at the primary
 *
 * So no reply knows of what was sent behind its command, and whoever has written something reads
 * that or what came after it. Only what may write guarded keys counts: others are read at primaries
 * in any case.
 */
#ifndef NESTGUARD_READS_H
#define NESTGUARD_READS_H

#include "base/span.h"
#include <stdbool.h>
#include <stddef.h>

struct buffer;
struct client;
struct reply_slot;
struct upstream;

/* It sends something that may write, with nothing under way at replicas. */
void reads_note_write(struct client *client);

/* What it reads next may be read from a replica. Asked before a slot is opened for that. */
bool reads_may_go_to_replica(struct client *client);

/* Where a lookup goes of guarded keys that the node has, in so many bytes: a replica of it that
 * will do. NULL: there is none. */
struct upstream *reads_replica(struct client *client, int node, size_t bytes);

/* As upstream_command(), of such a replica; the slot's kind can ask again. */
struct buffer *reads_ask_replica(struct upstream *replica, struct reply_slot *slot, unsigned index);

/* Asks the primary about one key, by the command of that name. False: there is no memory for that.
 */
bool reads_ask_again(struct reply_slot *slot, unsigned index, const char *name, struct span key);

/* To whom it asks again: the connection to the key's node that what its client sends goes over. */
struct upstream *reads_primary(const struct reply_slot *slot, struct span key);

#endif
