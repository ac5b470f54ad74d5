#include "slot.h"

#include "client.h"
#include "memory.h"
#include "worker.h"

#include <stdlib.h>

enum { KEEP_BYTES = 4096, KEEP_SLOTS = 4096 };

struct slot *slot_open(struct client *client, const struct slot_kind *kind)
{
    struct worker *worker = client->worker;
    struct slot *slot = worker->free_slots;
    if (slot) {
        worker->free_slots = slot->next;
        worker->free_slot_count--;
    } else {
        slot = xcalloc(1, sizeof *slot);
    }
    slot->next = NULL;
    slot->worker = worker;
    slot->client = client;
    slot->kind = kind;
    slot->waiting = 0;
    slot->lookup_count = 0;
    slot->commands = 1;
    client_enqueue(client, slot);
    return slot;
}

struct buffer *slot_output(struct slot *slot)
{
    struct client *client = slot->client;
    return client && client->slots == slot ? &client->out : &slot->reply;
}

void slot_set_lookups(struct slot *slot, const struct span *arguments, size_t count, size_t step)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += arguments[i * step].length;
    buffer_clear(&slot->keys);
    char *at = buffer_reserve(&slot->keys, bytes);
    slot->lookups = count == 1 ? &slot->one : xcalloc(count, sizeof *slot->lookups);
    slot->lookup_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t length = arguments[i * step].length;
        memcpy(at, arguments[i * step].at, length);
        slot->lookups[i] =
            (struct lookup){.slot = slot, .key = {at, length}, .keyspace = NOT_GUARDED};
        at += length;
    }
}

/* Replies that nobody takes must not pile up; but the first to pass the bound may be as large as it
 * is. */
static bool is_wanted(const struct slot *slot)
{
    if (slot->client && client_waiting(slot->client) > slot->worker->view->config->max_output)
        client_drop(slot->client);
    return slot->client;
}

void slot_cache_reply(struct slot *slot, unsigned index, struct span reply)
{
    if (is_wanted(slot))
        slot->kind->on_cache(slot, index, reply);
    slot_answered(slot);
}

void slot_cache_failure(struct slot *slot, unsigned index, const char *why)
{
    if (slot->client)
        slot->kind->on_cache_failure(slot, index, why);
    slot_answered(slot);
}

void slot_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    struct slot *slot = lookup->slot;
    if (is_wanted(slot))
        slot->kind->on_loaded(lookup, outcome, value);
    slot_answered(slot);
}

void slot_answered(struct slot *slot)
{
    if (--slot->waiting)
        return;
    if (!slot->client) {
        slot_recycle(slot);
        return;
    }
    if (slot->kind->finish)
        slot->kind->finish(slot);
    client_finished(slot->client, slot);
}

void slot_recycle(struct slot *slot)
{
    struct worker *worker = slot->worker;
    for (size_t i = 0; i < slot->lookup_count; i++)
        buffer_finish(&slot->lookups[i].answer);
    if (slot->lookup_count > 1)
        free(slot->lookups);
    slot->lookup_count = 0;
    buffer_clear(&slot->reply);
    buffer_trim(&slot->reply, KEEP_BYTES);
    buffer_clear(&slot->keys);
    buffer_trim(&slot->keys, KEEP_BYTES);
    if (worker->free_slot_count < KEEP_SLOTS) {
        slot->next = worker->free_slots;
        worker->free_slots = slot;
        worker->free_slot_count++;
    } else {
        slot_destroy(slot);
    }
}

void slot_destroy(struct slot *slot)
{
    buffer_finish(&slot->reply);
    buffer_finish(&slot->keys);
    free(slot);
}
