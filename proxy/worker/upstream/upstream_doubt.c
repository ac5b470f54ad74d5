/* A server that may have forgotten what was deleted from it is not asked for rows before it is
 * swept: the row itself is, as when the cache is down. Decided when the connection comes up and
 * with each tick, so that lookups over one that is believed cost nothing more.
 *
 *   GREETING ─ run_id ─▶ UP, believed ◀──┐                             cache/vouched.h
 *                  └───▶ UP, doubted ◀───┴─ asked again with each tick
 *
 * A node of a cluster that has given its last slot away is nobody's to sweep any more, and so it is
 * doubted; while a worker whose map is older still takes the keys for that node's. What only the
 * cache can tell would be an error until the next map. So a lookup does go to a doubted node: that
 * another has the key is no value, and counts, and so the map learns of it; any other answer does
 * not, and the lookup fails as elsewhere. What may write does not go. (In a transaction nothing is
 * a lookup, so none is queued that its client takes for refused: EXEC is what tells, withheld.h.)
 */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "guard/guard.h"
#include "redis/topology/redis_cluster.h"

#include <stdio.h>

const char upstream_doubted_text[] = "NESTGUARD cache started anew: what it may have forgotten to "
                                     "delete is being deleted, try again";

/* The guard could load them if the cache did not have them; or the cache alone can tell, and may
 * tell of a value that is old. */
bool upstream_looks_up_rows(const struct reply_slot *slot, unsigned index)
{
    if (slot->kind->reads_row)
        return true;
    if (!slot->kind->on_loaded || !slot->lookup_count || !slot->replies)
        return false; /* or nobody hears of it */
    if (slot->lookup_count > 1 && !slot->kind->asks_each)
        return slot->asks_for_rows;
    int keyspace = slot->lookups[slot->kind->asks_each ? index : 0].keyspace;
    return keyspace != NOT_GUARDED && keyspace_has_rows(serving_keyspace(slot->serving, keyspace));
}

bool upstream_takes_doubted(const struct upstream *upstream, const struct reply_slot *slot,
                            unsigned index)
{
    return (upstream->keeps && !slot->kind->may_write) || !upstream_looks_up_rows(slot, index);
}

void upstream_mark_doubted(struct upstream *upstream)
{
    struct in_flight *request = in_flight_last(&upstream->in_flight);
    if (request->slot && upstream->is_doubted)
        request->leads_on = upstream_looks_up_rows(request->slot, request->index);
}

/* What has waited for the connection leaves with the rest, but nobody hears the answer. */
static void withdraw(struct upstream *upstream, struct in_flight *request)
{
    upstream_fail_later(upstream, *request);
    request->slot = NULL;
    request->index = ASKED_NO_MORE;
}

/* All that is gathered: a connection that is held, or to a cache that takes no bytes for now, may
 * have much of it. */
static void withdraw_lookups(struct upstream *upstream)
{
    for (size_t left = upstream->in_flight.count; left; left--) {
        struct in_flight request = in_flight_pop(&upstream->in_flight);
        bool is_gathered = left <= upstream->gathered;
        if (is_gathered && request.slot && upstream_looks_up_rows(request.slot, request.index)) {
            if (upstream->keeps)
                request.leads_on = true;
            else
                withdraw(upstream, &request);
        }
        in_flight_push(&upstream->in_flight, request);
    }
}

/* Replicas are chosen by what their primary says, and that is not asked while it is doubted. */
static void judge(struct upstream *upstream)
{
    struct vouched *vouched = upstream->serving->vouched;
    upstream->judged = vouched_version(vouched);
    upstream->is_doubted =
        !upstream->options.replica && !vouched_believes(vouched, upstream->run_id, clock_ms());
}

/* Of what is gathered, one that may write and tells of a row. */
static bool has_telling_write(const struct upstream *upstream)
{
    const struct in_flight_queue *queue = &upstream->in_flight;
    for (size_t left = upstream->gathered; left; left--) {
        size_t place = queue->first + queue->count - left;
        const struct in_flight *request = &queue->ring[place & (queue->size - 1)];
        if (request->slot && request->slot->kind->may_write &&
            upstream_looks_up_rows(request->slot, request->index))
            return true;
    }
    return false;
}

/* When nothing else was sent, what waited gets that word, as for a busy cache. */
static void lose_doubted(struct upstream *upstream)
{
    bool all = upstream->gathered == upstream->in_flight.count;
    snprintf(upstream->trouble, sizeof upstream->trouble, "%s", upstream_doubted_text);
    upstream_lose(upstream, all ? upstream->trouble : "it is doubted, and a write waits");
}

/* A write that is gathered must not be done unheard, and cannot be told from the bytes around it:
 * nothing of what is gathered is sent. On an own connection the rest of a command may be to come,
 * and on one that has been up for a while other things may be under way. */
static void refuse_rows(struct upstream *upstream, bool is_new)
{
    if (!has_telling_write(upstream))
        withdraw_lookups(upstream);
    else if (is_new && !upstream_is_own(upstream))
        upstream_fail_waiting(upstream);
    else
        lose_doubted(upstream);
}

void upstream_judge_server(struct upstream *upstream)
{
    judge(upstream);
    if (upstream->is_doubted)
        refuse_rows(upstream, true);
}

/* There may be thousands of connections, and mostly nothing has changed. */
void upstream_review_server(struct upstream *upstream)
{
    bool was_doubted = upstream->is_doubted;
    bool may_differ =
        was_doubted || upstream->judged != vouched_version(upstream->serving->vouched);
    if (upstream->state != UP || !may_differ)
        return;
    judge(upstream);
    if (!upstream->is_doubted || was_doubted)
        return;
    refuse_rows(upstream, false);
    if (upstream->route->cluster)
        redis_cluster_refresh(upstream->route->cluster); /* it may have no keys any more */
}

bool upstream_is_doubted(const struct upstream *upstream)
{
    return upstream->is_doubted;
}

const char *upstream_run_id(const struct upstream *upstream)
{
    return upstream->state == UP ? upstream->run_id : "";
}
