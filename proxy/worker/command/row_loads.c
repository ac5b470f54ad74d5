/* A slot's lookups wait in a line of their own; `loading` of them are with the keeper:
 *
 *   to_load ─▶ lookup ─▶ lookup      last_to_load is valid while there are any
 */
#include "worker/command/row_loads.h"

#include "base/memory.h"

/* Of one slot at the keeper: enough to keep the database busy, and a share of the budget that
 * leaves some to others. */
enum { LOADS_AT_ONCE = 32 };

static void ask_keeper(struct lookup *lookup)
{
    struct load_request *request = xmalloc(sizeof *request + lookup->key.length);
    struct key key = key_make(lookup->keyspace, lookup->key);
    *request = (struct load_request){
        .message = {.kind = MESSAGE_LOAD}, .lookup = lookup, .key = key_copy(key, request->text)};
    lookup->slot->loading++;
    serving_ask_keeper(lookup->slot->serving, &request->message);
}

static bool has_turn(const struct reply_slot *slot)
{
    unsigned budget = serving_config(slot->serving)->load_budget;
    return slot->loading < (budget < LOADS_AT_ONCE ? budget : LOADS_AT_ONCE);
}

void row_load(struct lookup *lookup)
{
    struct reply_slot *slot = lookup->slot;
    slot->waiting++; /* whatever becomes of its client */
    if (has_turn(slot)) {
        ask_keeper(lookup);
        return;
    }
    lookup->next = NULL;
    *(slot->to_load ? &slot->last_to_load->next : &slot->to_load) = lookup;
    slot->last_to_load = lookup;
}

static struct lookup *next_to_load(struct reply_slot *slot)
{
    struct lookup *lookup = slot->to_load;
    slot->to_load = lookup->next;
    return lookup;
}

/* An answer that would be the same for those that still wait for their turn: each would take as
 * long again. */
static bool holds_for_all(enum load_outcome outcome)
{
    return outcome == LOAD_TIMEOUT || outcome == LOAD_DOWN;
}

/* One answer has come, and the slot still waits for it: makes room for others, or ends them. They
 * wait only while loads are with the keeper, so the last of these sees to them. */
static void go_on_loading(struct reply_slot *slot, enum load_outcome outcome)
{
    bool ended = !slot->replies || holds_for_all(outcome);
    while (slot->to_load && (ended || has_turn(slot))) {
        struct lookup *lookup = next_to_load(slot);
        if (!ended) {
            ask_keeper(lookup);
            continue;
        }
        if (slot->replies)
            slot->kind->on_loaded(lookup, outcome, NULL);
        reply_slot_answered(slot);
    }
}

void row_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    struct reply_slot *slot = lookup->slot;
    if (reply_slot_is_wanted(slot))
        slot->kind->on_loaded(lookup, outcome, value);
    slot->loading--;
    go_on_loading(slot, outcome);
    reply_slot_answered(slot);
}
