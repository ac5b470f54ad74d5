/* Keys that the writes in a transaction are to make. Queued is not done: until EXEC the worker
 * alone counts each as being written, and what becomes of that EXEC's reply says.
 *
 *   MULTI ─▶ SET ─▶ noted ─┬─ EXEC ──▶ its slot's keys: hints when it was executed, else nothing
 *                          └─ DISCARD, RESET, or the client goes ──▶ nothing is left of them
 */
#ifndef NESTGUARD_QUEUED_WRITES_H
#define NESTGUARD_QUEUED_WRITES_H

#include "guard/key.h"
#include "worker/client/client.h"

/* Begins a write of each of these keys, the guarded among them, and notes that with the client,
 * whose share of hints they are in. False: they would be too many for one transaction, and nothing
 * was done. */
bool queued_writes_note(struct client *client, const struct span *keys, size_t count);

/* Takes the next key off the rest, which is pinned.written at first. False: that was the last. */
bool queued_writes_next(struct span *rest, struct key *key);

/* A transaction is over, or about to begin: what is left of the one before is forgotten, and no
 * write of it is under way. */
void queued_forget(struct client *client);
void queued_writes_forget(struct client *client); /* the writes alone */

/* Of the last places that the client has taken for hints so many were not needed. */
void hints_give_back(struct client *client, size_t places);

#endif
