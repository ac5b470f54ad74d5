/* What lookup_many.c and lookup_pieces.c share. */
#ifndef NESTGUARD_LOOKUP_MANY_INTERNAL_H
#define NESTGUARD_LOOKUP_MANY_INTERNAL_H

#include "worker/command/keys/lookup_join.h"
#include "worker/request/request.h"

/* Lookups of a slot, from `first` up to `end`. */
struct range {
    size_t first, end;
};

static inline struct range lookup_many_range(const struct reply_slot *slot, size_t first)
{
    size_t left = slot->lookup_count - first;
    return (struct range){first, first + (left < LOOKUPS_AT_ONCE ? left : LOOKUPS_AT_ONCE)};
}

/* Most bytes of a command that asks for these. */
static inline size_t lookup_many_bytes(const struct reply_slot *slot, struct range range)
{
    size_t most = 0;
    for (size_t i = range.first; i < range.end; i++)
        most += slot->lookups[i].key.length + 3 * RESP_HEADER_ROOM;
    return most;
}

/* Decides on these and asks the cache for those that pass: for nothing when all are rejected. */
void lookup_many_ask(struct client *client, struct reply_slot *slot, struct range range,
                     bool may_be_at_replica);

/* An inline command has none, for it cannot wait: its bytes were written over when it was parsed.
 */
bool lookup_many_has_pieces(const struct request *request);

/* Whether there is room for it as well, and nothing but the command in the client's input. */
bool lookup_many_may_have_pieces(const struct client *client, const struct request *request);

/* Of such a command, whose slot has places for its lookups of that kind. */
void lookup_many_begin_pieces(struct client *client, const struct request *request,
                              struct reply_slot *slot);

/* Of one whose keys are looked through first: if none is guarded it is forwarded, else it gets a
 * slot of this kind. */
void lookup_many_begin_search(struct client *client, const struct request *request,
                              const struct reply_slot_kind *kind);

#endif
