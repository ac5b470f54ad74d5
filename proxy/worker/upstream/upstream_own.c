/* What only the owner of a connection does with it. */
#include "worker/upstream/upstream_internal.h"

/* Sent "at no time", a request is never overdue (upstream_check_progress()). */
void upstream_be_patient(struct upstream *upstream, bool patient)
{
    if (upstream->in_flight.count)
        in_flight_set_time(&upstream->in_flight, patient ? 0 : uv_now(&upstream->serving->loop));
}

void upstream_set_urgent(struct upstream *upstream)
{
    upstream->is_urgent = true;
}

/* After a loss there is nothing that they could belong to. */
void upstream_append(struct upstream *upstream, struct span bytes)
{
    if (upstream->state != UP && upstream_was_tried(upstream))
        return;
    buffer_append(&upstream->out, bytes.at, bytes.length);
    upstream_mark_dirty(upstream);
}

/* See upstream_be_patient() for what that time means. */
bool upstream_is_waiting(const struct upstream *upstream)
{
    return upstream->in_flight.count && !in_flight_oldest(&upstream->in_flight);
}

struct reply_slot *upstream_waiting_slot(const struct upstream *upstream)
{
    const struct in_flight_queue *queue = &upstream->in_flight;
    const struct in_flight *last = queue->count ? in_flight_last(queue) : NULL;
    return last && !last->since ? last->slot : NULL;
}

struct reply_slot *upstream_next_slot(const struct upstream *upstream)
{
    const struct in_flight *first = in_flight_first(&upstream->in_flight);
    return first ? first->slot : NULL;
}

struct reply_slot *upstream_first_slot(const struct upstream *upstream)
{
    return in_flight_first_slot(&upstream->in_flight);
}

uint64_t upstream_cache_id(const struct upstream *upstream)
{
    return upstream->cache_id;
}

/* What was kept back leaves at the end of the turn. The cache's time to answer it begins now,
 * however long it has waited here for what came before it. */
void upstream_hold(struct upstream *upstream, bool hold)
{
    if (upstream->held && !hold)
        upstream->heard = uv_now(&upstream->serving->loop);
    upstream->held = hold;
    upstream_mark_dirty(upstream);
}

void upstream_relay(struct upstream *upstream, struct span bytes)
{
    upstream->relays = true;
    upstream_append(upstream, bytes);
}
