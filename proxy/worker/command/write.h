/* Writes and deletions of keys: forwarded, and of guarded keys the keeper hears when it must. A
 * write is also a hint that its keys exist.
 */
#ifndef NESTGUARD_WRITE_H
#define NESTGUARD_WRITE_H

#include "worker/command/request.h"

/* Forwards a COMMAND_WRITE or COMMAND_DELETE. Its reply leaves when every worker has admitted the
 * keys that no filter knew, and nothing older of them can reach the cache any more. */
void write_dispatch(struct client *client, const struct request *request);

/* The same in pieces: the slot, and before the last of the command goes to the cache, its key. */
struct slot *write_open(struct client *client);
void write_note(struct slot *slot, struct span key);

#endif
