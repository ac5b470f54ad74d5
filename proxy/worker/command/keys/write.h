/* Writes and deletions of keys: forwarded, and of guarded keys the keeper hears when it must. A
 * write is also a hint that its keys exist.
 */
#ifndef NESTGUARD_WRITE_H
#define NESTGUARD_WRITE_H

#include "worker/request/request.h"

/* Whether it is served in pieces (write_pieces.c), or may be one too many of a user of the cache's
 * own, and something of the client's is still to be answered. */
bool write_must_wait(const struct client *client, const struct request *request);

/* Forwards a COMMAND_WRITE or COMMAND_DELETE. When the cache has done it, its reply leaves as soon
 * as every worker has admitted the keys that no filter knew, and nothing older of them can reach
 * the cache any more. A write of more such keys than the client may is refused instead: -ENOSPC,
 * and nothing is written to the client's replies; but in pieces the refusal is. */
int write_dispatch(struct client *client, const struct request *request);
extern const char write_refusal[]; /* what to answer then */

/* Forwards an EXEC whose transaction makes or deletes keys, pinned.written and pinned.deleted, as a
 * write of the one and a deletion of the others. If it is not executed, there are no hints, and
 * nothing is deleted; nor behind one that may have made them again (clearing.h). */
void write_execute(struct client *client, const struct request *request);

/* The keeper has given a request back, which stays the caller's. */
void write_returned(struct serving *serving, const struct write_request *request);

/* Admits guarded keys that nothing is written of: the reply that is put into slot->reply leaves as
 * that of a write would. are_new[i]: whether it was keys[i] that nothing had known of. NULL:
 * refused as a write would be. Ends with write_admitted(). */
struct reply_slot *write_admit(struct client *client, const struct span *keys, size_t count,
                               bool *are_new);
void write_admitted(struct reply_slot *slot);

/* The same in pieces: the slot, and before the last of the command goes to the cache, its key and
 * what its reply will say of it. */
struct reply_slot *write_open(struct client *client);
void write_note(struct reply_slot *slot, enum command_proof proof, struct span key);

#endif
