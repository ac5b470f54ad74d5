/* What the client has sent behind such a lookup waits until no replica is to answer any more
 * (client/reads.h): so it comes no earlier at the primary than what is asked again.
 */
#include "worker/reply/at_replica.h"

#include "resp/reply.h"
#include "resp/resp.h"

void at_replica_begin(struct reply_slot *slot)
{
    slot->replies->at_replicas++;
    counter_add(&slot->serving->counters.replica_reads, 1);
}

static bool has_nil(struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    int64_t count = resp_array_open(reply, &at);
    for (int64_t i = 0; i < count; i++)
        if (reply_is_nil(resp_array_next(&at, end)))
            return true;
    return false;
}

static bool lacks_something(struct span reply)
{
    bool is_nothing = reply_is_nil(reply) || span_is(reply, ":0\r\n") || span_is(reply, "*0\r\n") ||
                      span_is(reply, "%0\r\n");
    return is_nothing || reply_is_error(reply) || (reply.at[0] == '*' && has_nil(reply));
}

static void ask_again(struct reply_slot *slot, unsigned index)
{
    counter_add(&slot->serving->counters.replica_misses, 1);
    slot->kind->ask_again(slot, index);
    reply_slot_answered(slot);
}

/* Of what has begun the rest belongs to it; and an answer that nobody waits for is not asked for
 * again. */
static bool must_do(struct reply_slot *slot)
{
    if (slot->replies)
        slot->replies->at_replicas--;
    return !slot->replies || slot->begun;
}

void at_replica_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    if (must_do(slot) || !lacks_something(reply))
        reply_slot_cache_reply(slot, index, reply);
    else
        ask_again(slot, index);
}

void at_replica_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    if (must_do(slot))
        reply_slot_cache_failure(slot, index, why);
    else
        ask_again(slot, index);
}
