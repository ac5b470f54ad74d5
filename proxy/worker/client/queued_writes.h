/* Keys that the writes in a transaction are to make. Queued is not done: until EXEC the worker
 * alone counts each as being written, and what becomes of that EXEC's reply says.
 *
 *   MULTI ─▶ SET ─▶ noted ─┬─ EXEC ──▶ its slot's keys: hints where this command's element of its
 *                          │           reply says that it is done, else nothing
 *                          └─ DISCARD, RESET, or the client goes ──▶ nothing is left of them
 *
 * A transaction may be open for longer than what admits a key lasts. So those that need no hint
 * when they are queued are remembered as well, and those that are too many to be counted as being
 * written; EXEC asks anew which of them need one by then.
 */
#ifndef NESTGUARD_QUEUED_WRITES_H
#define NESTGUARD_QUEUED_WRITES_H

#include "guard/key.h"
#include "resp/command.h"
#include "worker/client/client.h"

/* A key that a write is to make. */
struct made_key {
    struct span text;
    bool granted; /* it has places of its client's share of hints; else it needed none */
};

/* Begins a write of each of these keys of the last command, the guarded among them, and notes that
 * with the client. False: they would be too many for one transaction, and nothing was done. */
bool queued_writes_note(struct client *client, enum command_proof proof,
                        const struct made_key *keys, size_t count);

/* Remembers another one, whose write has not begun, if it is guarded. is_granted: it has places of
 * its client's share all the same. False: there is no room for it, nor is any more remembered. */
bool queued_writes_remember(struct client *client, enum command_proof proof, struct span key,
                            bool is_granted);

struct queued_write {
    struct key key;
    size_t command; /* which of those queued, from 0 on */
    enum command_proof proof;
    bool begun;
    bool granted; /* it has places of its client's share */
};

/* As many elements as EXEC's reply must have to be judged by them; 0: it cannot be. */
size_t queued_writes_elements(const struct client *client);

/* All of them, which are the caller's from now on. */
struct buffer queued_writes_take(struct client *client);

/* Takes the next one off the rest, which is all of them at first. False: that was the last. */
bool queued_writes_next(struct span *rest, struct queued_write *write);

/* Puts one that was taken back, behind all others. */
void queued_writes_put(struct client *client, const struct queued_write *write);

/* One deletes this key, if it is guarded. Of more keys than are remembered the keeper takes all for
 * deleted. */
void queued_writes_delete(struct client *client, struct span key);

/* One makes it, perhaps behind such a deletion. */
void queued_writes_remake(struct client *client, struct span key);

/* A transaction is over, or about to begin: what is left of the one before is forgotten, and no
 * write of it is under way. */
void queued_forget(struct client *client);
void queued_writes_forget(struct client *client); /* the writes alone */

/* Of the last places that the client has taken for hints so many were not needed. */
void hints_give_back(struct client *client, size_t places);

#endif
