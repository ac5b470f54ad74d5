/* Nothing but the number of answers to come is looked at in a slot whose client has gone. So what
 * it has gathered goes back before they are there: while the cache is slow clients could come, ask
 * for a million keys, and go, again and again. To free as much at once takes milliseconds: it is
 * done some at a time, in turn with what clients have in line.
 */
#include "worker/reply/reply_slot.h"

#include "base/container_of.h"
#include "base/memory.h"

#include <stdlib.h>

enum {
    MUCH_BYTES = 64 * 1024,
    FREED_AT_ONCE = 16 * 1024, /* more than a megabyte */
    SLOT_COST = 256            /* beside them, in lookups */
};

static void free_rest(struct reply_slot *slot)
{
    if (slot->lookups != &slot->one)
        free(slot->lookups);
    slot->lookups = NULL;
    slot->lookup_count = 0;
    buffer_finish(&slot->keys);
    buffer_finish(&slot->reply);
}

/* From the end of its lookups, so that their number says how far that has come. True: there are
 * more than `most`. */
static bool free_some(struct reply_slot *slot, size_t most)
{
    if (slot->lookup_count <= most) {
        free_rest(slot);
        return false;
    }
    slot->lookup_count -= most;
    const char *last = (const char *)&slot->lookups[slot->lookup_count];
    memory_forget((struct span){last, most * sizeof *slot->lookups});
    return true;
}

static void run(struct turn_task *task)
{
    struct gone_slots *gone = container_of(task, struct gone_slots, task);
    struct reply_slot *slot;
    size_t left = FREED_AT_ONCE;
    while (left && (slot = gone->first)) {
        size_t cost = SLOT_COST + slot->lookup_count, some = cost < left ? cost : left;
        turn_worked(&slot->serving->turn, some);
        if (free_some(slot, left)) {
            turn_line_up(&slot->serving->turn, task);
            return;
        }
        left -= some;
        gone->first = slot->next;
        reply_slot_answered(slot);
    }
    if (gone->first)
        turn_line_up(&gone->first->serving->turn, task);
}

/* What a kind does unheard it does with its lookups; so does the keeper, with those that it loads.
 */
void reply_slot_has_gone(struct reply_slot *slot)
{
    struct gone_slots *gone = &slot->serving->gone;
    bool is_needed = slot->kind->on_unheard || slot->loading || slot->whole;
    if (is_needed || slot->serving->ending || slot->gathered + slot->reply.size < MUCH_BYTES)
        return;
    slot->waiting++;
    slot->next = gone->first;
    if (!gone->first)
        gone->task = (struct turn_task){.run = run, .phase = TURN_READ};
    gone->first = slot;
    turn_line_up(&slot->serving->turn, &gone->task);
}
