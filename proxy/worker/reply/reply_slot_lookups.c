/* The lookups of a slot's command: their keys, and their parts of the reply, each in one place. */
#include "base/memory.h"
#include "guard/guard.h"
#include "worker/reply/reply_slot.h"

#include <stdlib.h>

void reply_slot_hold(struct reply_slot *slot, size_t bytes)
{
    slot->gathered += bytes;
    slot->replies->gathered += bytes;
}

void reply_slot_let_go(struct reply_slot *slot, size_t bytes)
{
    slot->gathered -= bytes;
    if (slot->replies)
        slot->replies->gathered -= bytes;
}

/* Each is written when it is added: of a million the memory is not touched before. */
bool reply_slot_try_lookup_places(struct reply_slot *slot, size_t count)
{
    slot->asks_for_rows = false;
    slot->lookups = malloc(count * sizeof *slot->lookups);
    if (!slot->lookups)
        return false;
    reply_slot_hold(slot, count * sizeof *slot->lookups);
    return true;
}

/* The keys lie one behind the other in memory that is reserved once: it does not move while
 * lookups point into it. */
bool reply_slot_try_lookup_room(struct reply_slot *slot, size_t count, size_t bytes)
{
    if (!buffer_try_reserve(&slot->keys, bytes + 1) || !reply_slot_try_lookup_places(slot, count))
        return false;
    reply_slot_hold(slot, bytes);
    return true;
}

void reply_slot_add_lookup(struct reply_slot *slot, struct span key)
{
    slot->lookups[slot->lookup_count++] =
        (struct lookup){.slot = slot, .key = key, .keyspace = NOT_GUARDED};
}

void reply_slot_add_lookups(struct reply_slot *slot, const struct span *keys, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct span key = {buffer_reserve(&slot->keys, keys[i].length), keys[i].length};
        buffer_append(&slot->keys, keys[i].at, keys[i].length);
        reply_slot_add_lookup(slot, key);
    }
}

bool reply_slot_try_lookups(struct reply_slot *slot, const struct span *keys, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += keys[i].length;
    bool has_room = reply_slot_try_lookup_room(slot, count, bytes);
    if (has_room)
        reply_slot_add_lookups(slot, keys, count);
    return has_room;
}

void reply_slot_set_lookups(struct reply_slot *slot, const struct span *keys, size_t count)
{
    if (!reply_slot_try_lookups(slot, keys, count))
        out_of_memory();
}

size_t lookup_begin(const struct lookup *lookup)
{
    return buffer_length(&lookup->slot->reply);
}

void lookup_end(struct lookup *lookup, size_t begun)
{
    struct reply_slot *slot = lookup->slot;
    size_t length = buffer_length(&slot->reply) - begun;
    if (!length)
        return; /* it may be in line to be loaded */
    lookup->answer = begun;
    lookup->answer_length = (unsigned)length;
    slot->gathered += length;
    if (slot->replies)
        slot->replies->gathered += length;
}

struct buffer reply_slot_take_answers(struct reply_slot *slot)
{
    struct buffer answers = slot->reply;
    slot->reply = (struct buffer){0};
    return answers;
}

struct span lookup_answer(const struct lookup *lookup, const struct buffer *answers)
{
    size_t length = lookup->answer_length;
    return length ? (struct span){buffer_span(answers).at + lookup->answer, length}
                  : (struct span){"", 0};
}

/* Every GET that is not rejected has one: only what is looked at is written. */
void reply_slot_set_lookup(struct reply_slot *slot, struct span key, int keyspace)
{
    struct lookup *lookup = &slot->one;
    char *at = slot->short_key;
    if (key.length > SHORT_KEY)
        at = buffer_reserve(&slot->keys, key.length);
    memcpy(at, key.at, key.length);
    lookup->slot = slot;
    lookup->key = (struct span){at, key.length};
    lookup->keyspace = keyspace;
    lookup->rejected = lookup->shadowed = false;
    slot->lookups = lookup;
    slot->lookup_count = 1;
}
