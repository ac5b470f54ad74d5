/* Each part lies where it was written; what is joined leaves while the rest still is. */
#include "worker/command/keys/lookup_join.h"

#include "base/container_of.h"
#include "base/memory.h"
#include "resp/reply.h"
#include "worker/reply/piecemeal.h"

enum {
    BYTES_AT_ONCE = 64 * 1024,
    FORGET_BYTES = 1024 * 1024, /* joined; then their memory goes back */
    FORGET_LOOKUPS = 16 * 1024, /* likewise */
    NOTHING = 5                 /* a nil, which lies apart from the answers around it */
};

struct joining {
    struct piecemeal piecemeal;
    struct buffer answers;
    size_t next;        /* of the lookups */
    size_t forgotten;   /* of those before it, whose memory has gone back */
    struct span joined; /* the last answers, as far as they lie side by side */
    bool lists;
    int64_t sum;
    struct span error; /* in `answers`; empty: none */
};

/* Where the slot's reply goes on; nowhere when its client has gone. */
static void append_part(struct reply_slot *slot, struct span bytes)
{
    reply_slot_append(slot, reply_slot_output(slot), bytes);
}

static const struct reply_slot_kind joined_kind = {.on_part = append_part};

static void begin_list(struct reply_slot *slot)
{
    struct buffer header = {0};
    resp_write_array(&header, slot->lookup_count);
    reply_slot_cache_part(slot, buffer_span(&header));
    buffer_finish(&header);
}

static void join_next(struct joining *joining, const struct lookup *lookup, struct span answer)
{
    if (joining->lists)
        reply_slot_cache_part(joining->piecemeal.slot, answer);
    else if (!lookup->rejected && reply_is_error(answer) && !joining->error.length)
        joining->error = answer;
    else
        joining->sum += span_is(answer, ":1\r\n");
}

/* A large reply is not to be there twice when its last part is joined. */
static void forget(struct joining *joining, struct span answer)
{
    struct span *joined = &joining->joined;
    if (answer.length <= NOTHING)
        return;
    if (joined->length && answer.at == joined->at + joined->length)
        joined->length += answer.length;
    else
        *joined = answer;
    if (joined->length < FORGET_BYTES)
        return;
    buffer_forget(&joining->answers, *joined);
    joined->length = 0;
}

/* To free all of a million at once takes milliseconds. */
static void forget_lookups(struct joining *joining)
{
    const struct lookup *lookups = joining->piecemeal.slot->lookups;
    size_t count = joining->next - joining->forgotten;
    if (count < FORGET_LOOKUPS)
        return;
    memory_forget(
        (struct span){(const char *)(lookups + joining->forgotten), count * sizeof *lookups});
    joining->forgotten = joining->next;
}

static void end(struct joining *joining)
{
    struct reply_slot *slot = joining->piecemeal.slot;
    if (joining->error.length)
        append_part(slot, joining->error);
    else if (!joining->lists)
        resp_write_integer(reply_slot_output(slot), joining->sum);
    buffer_finish(&joining->answers);
}

/* Whether there is more to be joined. */
static bool join_some(struct joining *joining, size_t most)
{
    struct reply_slot *slot = joining->piecemeal.slot;
    size_t left = slot->lookup_count - joining->next, bytes = 0;
    size_t last = joining->next + (left < most ? left : most);
    while (slot->replies && joining->next < last && bytes < BYTES_AT_ONCE) {
        const struct lookup *lookup = &slot->lookups[joining->next++];
        struct span answer = lookup_answer(lookup, &joining->answers);
        bytes += answer.length;
        join_next(joining, lookup, answer);
        if (joining->lists)
            forget(joining, answer);
    }
    return slot->replies && joining->next < slot->lookup_count;
}

static bool go_on(struct piecemeal *piecemeal)
{
    struct joining *joining = container_of(piecemeal, struct joining, piecemeal);
    turn_worked(&piecemeal->slot->serving->turn, LOOKUPS_AT_ONCE);
    if (join_some(joining, LOOKUPS_AT_ONCE)) {
        forget_lookups(joining);
        return true;
    }
    end(joining);
    return false;
}

static void join_in_pieces(const struct joining *begun)
{
    struct joining *joining = xmalloc(sizeof *joining);
    *joining = *begun;
    begun->piecemeal.slot->waiting++;
    piecemeal_begin(&joining->piecemeal, 0);
}

/* What it still waits for is this: its kind is asked to finish it no more. */
static void join(struct reply_slot *slot, bool lists)
{
    struct joining joining = {.piecemeal = {.slot = slot, .go_on = go_on},
                              .answers = reply_slot_take_answers(slot),
                              .lists = lists};
    slot->kind = &joined_kind;
    if (lists)
        begin_list(slot);
    if (slot->lookup_count > LOOKUPS_AT_ONCE) {
        join_in_pieces(&joining);
        return;
    }
    while (join_some(&joining, LOOKUPS_AT_ONCE))
        ;
    end(&joining);
}

void lookup_join_list(struct reply_slot *slot)
{
    join(slot, true);
}

void lookup_join_sum(struct reply_slot *slot)
{
    join(slot, false);
}
