/* A client's lookups wait in a line; `loading` of them are with the keeper:
 *
 *   to_load ─▶ lookup ─▶ lookup      last_to_load is valid while there are any
 */
#include "worker/request/row_loads.h"

#include "base/memory.h"
#include "worker/reply/measuring.h"

#include <assert.h>

/* Of one client at the keeper: enough to keep the database busy. */
enum { LOADS_AT_ONCE = 32 };

static void ask_keeper(struct replies *replies, struct lookup *lookup)
{
    struct load_request *request = xmalloc(sizeof *request + lookup->key.length);
    struct key key = key_make(lookup->keyspace, lookup->key);
    *request = (struct load_request){.message = {.kind = MESSAGE_LOAD},
                                     .lookup = lookup,
                                     .client = replies,
                                     .origin = replies->origin,
                                     .gone = &lookup->slot->gone,
                                     .key = key_copy(key, request->text)};
    lookup->asked = ++replies->asked.count;
    replies->loading++;
    lookup->slot->loading++;
    serving_ask_keeper(lookup->slot->serving, &request->message);
}

static void append(struct replies *replies, struct lookup *lookup)
{
    lookup->next = NULL;
    *(replies->to_load ? &replies->last_to_load->next : &replies->to_load) = lookup;
    replies->last_to_load = lookup;
    replies->to_load_count++;
}

static struct lookup *take_first(struct replies *replies)
{
    struct lookup *lookup = replies->to_load;
    replies->to_load = lookup->next;
    replies->to_load_count--;
    return lookup;
}

void row_load(struct lookup *lookup)
{
    struct reply_slot *slot = lookup->slot;
    assert(slot->replies);
    slot->waiting++;
    slot->replies->loads++;
    if (slot->replies->loading < LOADS_AT_ONCE)
        ask_keeper(slot->replies, lookup);
    else
        append(slot->replies, lookup);
}

/* What one lookup was answered, whose keyspace and number these are. */
struct told {
    enum load_outcome outcome;
    int keyspace;
    unsigned asked;
};

/* Another of its table, that is: then it was the row that took too long. (Numbers begin again after
 * the last.) */
static bool has_answered_later(const struct replies *replies, const struct told *told)
{
    return replies->asked.keyspace == told->keyspace &&
           (int)(replies->asked.last - told->asked) > 0;
}

/* An answer that would be the same for those that still wait in the client's line: they would wait
 * for as long again, for the same table or for the same turn. (The wait was the client's own: that
 * others have waited for longer times out nobody, see loads.h.) */
static bool holds_for(const struct told *told, const struct lookup *lookup)
{
    return told->outcome == LOAD_DOWN || told->outcome == LOAD_BUSY || told->outcome == LOAD_CUT ||
           (told->outcome == LOAD_TIMEOUT && lookup->keyspace == told->keyspace);
}

static bool is_failure(enum load_outcome outcome)
{
    return outcome != LOAD_ROW && outcome != LOAD_ABSENT;
}

/* What nobody waits for any more is not timed, either. */
static void tell(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    struct reply_slot *slot = lookup->slot;
    if (!reply_slot_is_wanted(slot))
        return;
    measuring_end(lookup, is_failure(outcome)      ? LOOKUP_ERROR
                          : outcome == LOAD_ABSENT ? LOOKUP_NO_ROW
                                                   : LOOKUP_LOADED);
    slot->kind->on_loaded(lookup, outcome, value);
}

/* Whoever is told may be the end of the client's replies, and of the rest of its line. */
static void tell_others(struct replies *replies, const struct told *told)
{
    for (size_t left = replies->to_load_count; left && replies->to_load; left--) {
        struct lookup *lookup = take_first(replies);
        struct reply_slot *slot = lookup->slot;
        if (!holds_for(told, lookup)) {
            append(replies, lookup);
            continue;
        }
        tell(lookup, told->outcome, NULL);
        reply_slot_answered(slot);
    }
}

/* Of answers the latest asked for counts, in whatever order they come. */
static void note_answer(struct replies *replies, const struct told *told)
{
    if (has_answered_later(replies, told))
        return;
    replies->asked.last = told->asked;
    replies->asked.keyspace = told->keyspace;
}

/* The client stays, whatever becomes of its replies: its memory goes in another turn of the loop.
 */
static void go_on_loading(struct replies *replies, const struct told *told)
{
    replies->loading--;
    if (!is_failure(told->outcome))
        note_answer(replies, told);
    else if (told->outcome != LOAD_TIMEOUT || !has_answered_later(replies, told))
        tell_others(replies, told);
    while (replies->to_load && replies->loading < LOADS_AT_ONCE)
        ask_keeper(replies, take_first(replies));
}

void row_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value)
{
    struct reply_slot *slot = lookup->slot;
    const struct told told = {outcome, lookup->keyspace, lookup->asked};
    tell(lookup, outcome, value);
    slot->loading--; /* only now: that may have been the end of the client's replies */
    if (slot->replies)
        go_on_loading(slot->replies, &told);
    else
        reply_slot_has_gone(slot);
    reply_slot_answered(slot);
}
