/* What a client that reads from replicas may rely on, as on one server:
 *
 *   GET at a replica ─ a write behind it ─▶ the write waits until the GET is answered
 *   a write ─ answered ─ cache_max_lag ─▶ GET at a replica again; until then at the primary
 *
 * So no reply knows of what was sent behind its command, and whoever has written something reads
 * that or what came after it. Only what may write guarded keys counts: others are read at primaries
 * in any case.
 */
#ifndef NESTGUARD_READS_H
#define NESTGUARD_READS_H

#include <stdbool.h>

struct client;

/* It sends something that may write, with nothing under way at replicas. */
void reads_note_write(struct client *client);

/* What it reads next may be read from a replica. */
bool reads_may_go_to_replica(struct client *client);

#endif
