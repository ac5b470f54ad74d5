/* What write.c, write_pieces.c and write_execute.c share. */
#ifndef NESTGUARD_WRITE_INTERNAL_H
#define NESTGUARD_WRITE_INTERNAL_H

#include "worker/command/keys/write_found.h"
#include "worker/command/keys/write_proof.h"

/* Of a command with more than so many keys these are looked at and noted so many at a time, in turn
 * with other clients, before it goes to the cache as it came; and so they are when the cache has
 * done it. Its client has nothing else under way meanwhile, as in lookup_many.h. If it goes before
 * the command is sent, that is not sent. */
enum { WRITES_AT_ONCE = 256 };

/* Of the keys of a command. */
struct range {
    size_t first, end;
};

static inline struct range write_next_piece(size_t first, size_t count, size_t step)
{
    size_t most = WRITES_AT_ONCE * step;
    return (struct range){first, count - first < most ? count : first + most};
}

/* That the request's slot has. */
const struct reply_slot_kind *write_kind_of(const struct client *client,
                                            const struct request *request);

/* The same of one that makes what was found among the named, and perhaps does so in a transaction:
 * that is noted for EXEC, or else remembered. */
const struct reply_slot_kind *write_kind_in_multi(struct client *client,
                                                  const struct reply_slot_kind *kind,
                                                  const struct named *named,
                                                  const struct buffer *found);

/* That EXEC's slot has. */
const struct reply_slot_kind *write_kind_of_exec(const struct client *client);

/* By its reply: which of the transaction's writes the cache has refused, though it was executed. */
void write_reject_each(struct reply_slot *slot, struct span reply);

/* The text is of a guarded key. */
struct key write_key_by_text(const struct serving *serving, struct span text);

/* Of a key whose write has begun, or which is deleted; the slot has room for it. */
struct lookup *write_note_key(struct reply_slot *slot, struct key key, bool deleted);

/* The command of such a one is done, or was run and has made nothing. Its slot waits for the
 * answer. Says whether it needs a place of the overrides for that. */
bool write_tell_keeper(const struct lookup *lookup, bool done);

/* Memory for the lookups of what was found. False: there is none. */
bool write_try_room(struct reply_slot *slot, const struct buffer *found);

/* Before the command goes to the cache: the slot has room for them. A key that was found may be of
 * no keyspace any more. */
void write_note_some(struct reply_slot *slot, const struct made_key *keys, size_t count);

/* What a write has taken of its client's share, and its host's, and does not need goes back. */
void write_give_back(struct reply_slot *slot, size_t places);

/* There are no places for a write's keys: counted, and told of. */
void write_count_refusal(struct client *client);

/* The slot waits for the cache no more; of what it has noted, the keeper hears now or never. */
void write_conclude(struct reply_slot *slot, enum write_outcome outcome);

/* False: it is done at once. */
bool write_begin_pieces(struct client *client, const struct request *request,
                        const struct named *named);

#endif
