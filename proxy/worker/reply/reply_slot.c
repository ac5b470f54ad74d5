/* Replies leave in the order of their commands, whatever order the answers come in:
 *
 *   head                                          tail
 *   GET, waiting ─▶ three that were ready ─▶ MGET, waiting
 *
 * When the head has its answers, it and all finished ones behind it move to `out`. The head writes
 * there at once; the others write to buffers of their own, and these bytes are `held`.
 */
#include "worker/reply/reply_slot.h"

#include "base/memory.h"

#include <assert.h>
#include <stdlib.h>

enum {
    /* What a worker keeps for reuse: slots, and the memory of each of a slot's two buffers. */
    KEEP_BYTES = 4096,
    KEEP_SLOTS = 4096
};

/* A slot of replies that were ready at once, behind others that were not. Nothing is owed to it. */
static const struct reply_slot_kind ready_kind = {0};

/* ---- the store of slots ---- */

/* Each command that is forwarded needs a slot: malloc() would be a good part of its cost. */
static inline struct reply_slot *take_from_store(struct serving *serving)
{
    struct reply_slot *slot = serving->free_slots;
    serving->free_slots = slot->next;
    serving->free_slot_count--;
    return slot;
}

/* For take_from_store(), which takes what is there. */
__attribute__((noinline)) static void fill_store(struct serving *serving)
{
    serving->free_slots = xcalloc_aligned(alignof(struct reply_slot), sizeof *serving->free_slots);
    serving->free_slot_count = 1;
}

static void reply_slot_free(struct reply_slot *slot)
{
    buffer_finish(&slot->reply);
    buffer_finish(&slot->keys);
    free(slot);
}

/* What grew large goes back to the system; a reply of ordinary size finds its memory here. */
static inline void empty(struct buffer *buffer)
{
    if (!buffer->size)
        return;
    buffer_clear(buffer);
    buffer_trim(buffer, KEEP_BYTES);
}

static void drop_lookups(struct reply_slot *slot)
{
    if (slot->lookups != &slot->one) {
        reply_slot_let_go(slot, slot->gathered);
        free(slot->lookups);
    }
    empty(&slot->keys);
}

static bool has_short_key(const struct reply_slot *slot)
{
    return slot->lookups == &slot->one && slot->one.key.at == slot->short_key;
}

static void recycle(struct reply_slot *slot)
{
    struct serving *serving = slot->serving;
    if (!has_short_key(slot))
        drop_lookups(slot);
    slot->lookups = NULL;
    slot->lookup_count = 0;
    empty(&slot->reply);
    if (serving->free_slot_count >= KEEP_SLOTS) {
        reply_slot_free(slot);
        return;
    }
    slot->next = serving->free_slots;
    serving->free_slots = slot;
    serving->free_slot_count++;
}

void reply_slot_free_store(struct serving *serving)
{
    while (serving->free_slots) {
        struct reply_slot *slot = serving->free_slots;
        serving->free_slots = slot->next;
        reply_slot_free(slot);
    }
    serving->free_slot_count = 0;
}

/* ---- the queue ---- */

/* Ready replies are counted in `held` once nothing more can join them: when a slot follows. */
static bool is_open(const struct reply_slot *slot)
{
    return slot->kind == &ready_kind && !slot->next;
}

size_t replies_open(const struct replies *replies)
{
    return replies->last && is_open(replies->last) ? buffer_length(&replies->last->reply) : 0;
}

static void enqueue(struct replies *replies, struct reply_slot *slot)
{
    if (replies->last && is_open(replies->last))
        replies->held += buffer_length(&replies->last->reply);
    if (replies->last)
        replies->last->next = slot;
    else
        replies->first = slot;
    replies->last = slot;
    replies->commands++;
}

static void dequeue(struct replies *replies)
{
    struct reply_slot *slot = replies->first;
    replies->first = slot->next;
    if (!replies->first)
        replies->last = NULL;
    replies->commands -= slot->commands;
    recycle(slot);
}

static void tell_client(struct replies *replies)
{
    turn_add(&replies->serving->turn, replies->task);
}

/* Lookups whose load the keeper has not been asked for. */
static void drop_loads(struct replies *replies)
{
    struct lookup *lookup = replies->to_load;
    replies->to_load = NULL;
    replies->to_load_count = 0;
    while (lookup) {
        struct lookup *next = lookup->next;
        reply_slot_answered(lookup->slot);
        lookup = next;
    }
}

/* Those that wait for nothing have nobody left to free them. */
void replies_abandon(struct replies *replies)
{
    struct reply_slot *slot = replies->first;
    replies->first = replies->last = NULL;
    replies->commands = replies->held = replies->gathered = 0;
    while (slot) {
        struct reply_slot *next = slot->next;
        slot->replies = NULL;
        slot->arrived = 0;
        slot->origin = replies->origin;
        if (slot->waiting) {
            atomic_store_explicit(&slot->gone, true, memory_order_relaxed);
            reply_slot_has_gone(slot);
        } else {
            recycle(slot);
        }
        slot = next;
    }
    drop_loads(replies);
}

/* Its client goes, at the end of the turn. */
static void end_replies(struct replies *replies, enum replies_end end)
{
    replies->end = end;
    replies_abandon(replies);
    tell_client(replies);
}

/* For bytes that a peer has sized. */
static bool keep(struct replies *replies, struct buffer *to, struct span bytes)
{
    bool kept = buffer_try_append(to, bytes.at, bytes.length);
    if (!kept)
        end_replies(replies, REPLIES_BROKEN);
    return kept;
}

static bool pour(struct replies *replies, struct buffer *reply)
{
    bool poured = buffer_try_pour(&replies->out, reply);
    if (!poured)
        end_replies(replies, REPLIES_BROKEN);
    return poured;
}

/* Moves finished replies from the head of the queue out. */
static void advance(struct replies *replies)
{
    while (replies->first && !replies->first->waiting) {
        struct buffer *reply = &replies->first->reply;
        if (!is_open(replies->first))
            replies->held -= buffer_length(reply);
        if (!replies->first->muted && !pour(replies, reply))
            return;
        dequeue(replies);
    }
    tell_client(replies);
}

/* What is not set here was left empty by recycle(), or is written before it is read: a slot has
 * more members than a command needs. */
struct reply_slot *reply_slot_open(struct replies *replies, const struct reply_slot_kind *kind)
{
    if (!replies->serving->free_slots)
        fill_store(replies->serving);
    struct reply_slot *slot = take_from_store(replies->serving);
    slot->next = NULL;
    slot->serving = replies->serving;
    slot->replies = replies;
    slot->kind = kind;
    slot->resp3 = replies->resp3;
    slot->muted = replies->muted;
    slot->begun = false;
    slot->waiting = 1;
    slot->commands = 1;
    slot->whole = replies->whole;
    if (slot->whole)
        slot->whole->waiting++;
    enqueue(replies, slot);
    return slot;
}

/* For replies that nobody gets: written all the same, so that no command need know. */
static struct buffer *unheard(struct replies *replies)
{
    buffer_clear(&replies->unheard);
    return &replies->unheard;
}

void replies_drop_unheard(struct replies *replies)
{
    empty(&replies->unheard);
}

/* A run of ready replies shares one slot: rejections behind a slow lookup cost bytes, not slots. */
struct buffer *replies_ready(struct replies *replies)
{
    tell_client(replies);
    if (replies->muted)
        return unheard(replies);
    if (!replies->first)
        return &replies->out;
    if (replies->last->kind != &ready_kind) {
        reply_slot_open(replies, &ready_kind)->waiting = 0;
    } else {
        replies->last->commands++;
        replies->commands++;
    }
    return &replies->last->reply;
}

/* A slot of its own behind `previous`, or the ready ones that are there. */
static void push_behind(struct replies *replies, struct reply_slot *previous, struct span bytes)
{
    if (previous->kind != &ready_kind) { /* its buffers come with the slot, emptied */
        if (!replies->serving->free_slots)
            fill_store(replies->serving);
        struct reply_slot *slot = take_from_store(replies->serving);
        *slot = (struct reply_slot){.next = previous->next,
                                    .serving = replies->serving,
                                    .replies = replies,
                                    .kind = &ready_kind,
                                    .commands = 1,
                                    .reply = slot->reply,
                                    .keys = slot->keys};
        previous->next = slot;
        replies->commands++;
        previous = slot;
    }
    if (keep(replies, &previous->reply, bytes))
        replies->held += bytes.length; /* another slot follows: it is not open */
}

void replies_push(struct replies *replies, const struct reply_slot *next, struct span bytes)
{
    struct reply_slot *previous = replies->first;
    if (!next && previous) {
        bool muted = replies->muted;
        replies->muted = false;
        keep(replies, replies_ready(replies), bytes);
        replies->muted = muted;
        return;
    }
    tell_client(replies);
    if (previous == next) {
        keep(replies, &replies->out, bytes);
        return;
    }
    while (previous->next != next)
        previous = previous->next;
    push_behind(replies, previous, bytes);
}

/* One slot takes all that comes there: a command of many keys may have as much of it as keys. */
void replies_push_behind(struct replies *replies, struct reply_slot *slot, struct span bytes)
{
    struct reply_slot *next = slot->next;
    if (!next || is_open(next)) {
        replies_push(replies, NULL, bytes);
        return;
    }
    tell_client(replies);
    push_behind(replies, next->kind == &ready_kind ? next : slot, bytes);
}

size_t replies_waiting(const struct replies *replies)
{
    const struct reply_slot *last = replies->last;
    size_t open = last && is_open(last) ? buffer_length(&last->reply) : 0;
    return buffer_length(&replies->out) + replies->sending + replies->held + open;
}

/* ---- one slot ---- */

/* An abandoned slot collects what nobody will read, so that its kind need not know. */
struct buffer *reply_slot_output(struct reply_slot *slot)
{
    struct replies *replies = slot->replies;
    bool leads = replies && replies->first == slot && !slot->muted;
    return leads ? &replies->out : &slot->reply;
}

void reply_slot_starve(struct reply_slot *slot)
{
    if (slot->replies)
        end_replies(slot->replies, REPLIES_BROKEN);
}

/* Replies that nobody takes must not pile up; but the first to pass the bound may be as large as it
 * is. What is held may not leave, whether the client reads or not: that it is much is no fault of
 * his. It leaves all at once when the late one is answered, and what is under way comes behind it:
 * so all of that is forgiven, and there will be no more of it. Half of the bound is left to him for
 * what was held without that. */
bool reply_slot_stays_wanted(const struct reply_slot *slot)
{
    struct replies *replies = slot->replies;
    size_t waiting = replies_waiting(replies);
    size_t leaving = buffer_length(&replies->out) + replies->sending;
    size_t most = serving_config(slot->serving)->max_output;
    if (replies->end == REPLIES_PACED)
        return true;
    if (leaving <= most && waiting - leaving > slot->serving->held_limit) {
        replies->end = REPLIES_PACED;
        tell_client(replies);
    } else if (waiting > most) {
        end_replies(replies, REPLIES_OVERFLOWN);
    }
    return slot->replies;
}

/* What has come of a reply takes memory before it is finished, however long that may be. */
static void count_arrived(struct reply_slot *slot)
{
    size_t arrived = buffer_length(&slot->reply), before = slot->arrived;
    slot->replies->held += arrived - before;
    slot->arrived = arrived;
    if (arrived > before)
        serving_arrived(slot->serving, arrived - before);
}

/* Earlier parts waited in the slot; the client has come to it meanwhile. */
static bool catch_up(struct reply_slot *slot)
{
    struct buffer *out = reply_slot_output(slot);
    if (slot->muted && !slot->whole)
        buffer_clear(&slot->reply);
    if (out != &slot->reply) {
        if (!pour(slot->replies, &slot->reply))
            return false;
        buffer_trim(&slot->reply, KEEP_BYTES);
    }
    count_arrived(slot);
    return true;
}

/* Whether the reply is wanted is asked before its first part alone: one that has begun is to become
 * whole. */
void reply_slot_cache_part(struct reply_slot *slot, struct span bytes)
{
    if (!slot->replies || (!slot->begun && !reply_slot_is_wanted(slot)))
        return;
    if (!catch_up(slot))
        return;
    slot->kind->on_part(slot, bytes);
    slot->begun = true;
    if (!slot->replies)
        return;
    count_arrived(slot);
    tell_client(slot->replies);
}

void reply_slot_cache_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    if (slot->begun && slot->replies)
        catch_up(slot);
    if (slot->begun ? slot->replies != NULL : reply_slot_is_wanted(slot))
        slot->kind->on_cache(slot, index, reply);
    else if (slot->kind->on_unheard)
        slot->kind->on_unheard(slot, reply);
    reply_slot_answered(slot);
}

/* What has begun cannot end with an error: bytes of a value are out, and the client would take it
 * for more of them. */
void reply_slot_cache_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    if (slot->begun && slot->replies)
        end_replies(slot->replies, REPLIES_BROKEN);
    if (slot->replies)
        slot->kind->on_cache_failure(slot, index, why);
    else if (slot->kind->on_unheard)
        slot->kind->on_unheard(slot, (struct span){"", 0});
    reply_slot_answered(slot);
}

/* ---- the last answer ---- */

void reply_slot_part(struct reply_slot *whole, struct span reply)
{
    whole->kind->on_part_of(whole, reply);
}

void reply_slot_drop_parts(struct reply_slot *whole)
{
    struct replies *replies = whole->replies;
    struct reply_slot *before = whole, *slot;
    while ((slot = before->next)) {
        if (slot->whole != whole || slot->waiting) {
            before = slot;
            continue;
        }
        before->next = slot->next;
        replies->held -= buffer_length(&slot->reply);
        if (replies->last == slot) {
            replies->last = before;
            if (is_open(before)) /* more can join it again */
                replies->held -= buffer_length(&before->reply);
        }
        replies->commands -= slot->commands;
        recycle(slot);
    }
}

static inline void finish(struct reply_slot *slot)
{
    struct replies *replies = slot->replies;
    if (!replies) {
        atomic_store_explicit(&slot->gone, false, memory_order_relaxed);
        recycle(slot);
        return;
    }
    replies->held += buffer_length(&slot->reply) - slot->arrived;
    slot->arrived = 0;
    if (replies->first == slot)
        advance(replies);
}

__attribute__((noinline)) static void finish_part(struct reply_slot *slot)
{
    struct reply_slot *whole = slot->whole;
    reply_slot_part(whole, buffer_span(&slot->reply));
    if (whole->replies)
        count_arrived(whole);
    slot->waiting = 0;
    finish(slot);
    reply_slot_answered(whole);
}

/* Until its reply is written it waits, for itself: that may end its client, or have it wait for
 * more. And until it is joined to the whole one's, for to join it may end its client, too. */
void reply_slot_finished(struct reply_slot *slot)
{
    if (slot->kind->finish && slot->replies)
        slot->kind->finish(slot);
    if (slot->whole && slot->waiting == 1)
        finish_part(slot);
    else if (--slot->waiting == 0 && !slot->whole)
        finish(slot);
}
