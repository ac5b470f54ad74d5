/* How much is sent ahead of its replies, and what they weigh. */
#include "worker/reply/hosts.h"
#include "worker/upstream/upstream_internal.h"

enum {
    CONGESTED_BYTES = 16 * 1024 * 1024, /* not yet taken by the kernel; all clients' together */
    OWN_CONGESTED_BYTES = 1024 * 1024,
    WEIGHED_BYTES = 32 * 1024 /* of a reply: with smaller ones nobody takes much */
};

/* Of what others share. An own connection is in nobody's way, and replicas have no lanes. */
void upstream_set_window(struct upstream *upstream)
{
    bool shared = !upstream_is_own(upstream) && !upstream->options.replica;
    reply_window_init(&upstream->window);
    upstream->weighed = shared ? WEIGHED_BYTES : SIZE_MAX;
    if (!upstream->options.large)
        return;
    reply_window_narrow(&upstream->window);
    upstream->weighed = 0;
}

void upstream_set_waiting(struct upstream *upstream, bool waiting)
{
    if (upstream->waits && !waiting)
        upstream_tell_relief(upstream);
    upstream->waits = waiting;
}

size_t upstream_memory(const struct upstream *upstream)
{
    return upstream->opening.size + upstream->in.size + upstream->out.size +
           upstream->sending.size + upstream->kept.bytes.size;
}

size_t upstream_unanswered(const struct upstream *upstream)
{
    return buffer_length(&upstream->out) + buffer_length(&upstream->sending) +
           buffer_length(&upstream->kept.bytes);
}

bool upstream_is_congested(const struct upstream *upstream)
{
    if (upstream->waits || upstream->in_flight.count >= upstream->window.most)
        return true;
    size_t most = upstream_is_own(upstream) ? OWN_CONGESTED_BYTES : CONGESTED_BYTES;
    return buffer_length(&upstream->out) + buffer_length(&upstream->sending) > most;
}

size_t upstream_window(const struct upstream *upstream)
{
    size_t most = upstream->window.most, count = upstream->in_flight.count;
    if (most == SIZE_MAX)
        return SIZE_MAX;
    return count < most ? most - count : 1;
}

void upstream_weigh(struct upstream *upstream, size_t bytes)
{
    const struct reply_slot *slot = upstream_next_slot(upstream);
    if (upstream->weighed == SIZE_MAX)
        return;
    reply_window_take(&upstream->window, bytes);
    if (slot && bytes)
        hosts_note_large(upstream->serving, slot->replies ? slot->replies->origin : slot->origin,
                         bytes);
}

__attribute__((noinline)) void upstream_weigh_whole(struct upstream *upstream, size_t bytes)
{
    upstream_weigh(upstream, bytes);
    if (!upstream->options.large)
        return;
    if (upstream->in_flight.count >= upstream->window.most)
        upstream_tell_relief(upstream);
    reply_window_end(&upstream->window);
}
