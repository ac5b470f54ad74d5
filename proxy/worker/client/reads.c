/* When a write was answered is not noted one by one: it was when nothing at all is under way. A
 * client that always has something under way is made to wait for its replies once.
 */
#include "worker/client/reads.h"

#include "base/clock.h"
#include "worker/client/client.h"
#include "worker/client/tracking.h"
#include "worker/reply/at_replica.h"
#include "worker/upstream/pool.h"

void reads_note_write(struct client *client)
{
    if (!client->reads.wrote)
        client->reads.wrote_at = clock_ms();
    client->reads.wrote = true;
}

/* Nothing is under way: all was answered by now. */
static void note_answered(struct client *client, uint64_t lag)
{
    client->reads.wrote = false;
    client->reads.primary_until = clock_ms() + lag;
}

bool reads_may_go_to_replica(struct client *client)
{
    struct reads *reads = &client->reads;
    const struct config *config = serving_config(client->serving);
    uint64_t lag = config->cache_max_lag_ms;
    if (config->cache_reads != CACHE_READS_REPLICA || client->pinned.own ||
        tracking_is_on(client) || client->replies.no_fallback || client->settling)
        return false;
    if (client_pool(client) != client->serving->pool) /* it is yet to follow the cache's move */
        return false;
    if (reads->wrote && !client->replies.first)
        note_answered(client, lag);
    if (reads->wrote && clock_ms() - reads->wrote_at > lag)
        client_settle(client);
    return !reads->wrote && clock_ms() >= reads->primary_until;
}

struct upstream *reads_replica(struct client *client, int node, size_t bytes)
{
    struct upstream *replica =
        pool_replica(client->serving->pool, node, client->replies.resp3, client->id);
    return replica && upstream_has_room(replica, bytes) ? replica : NULL;
}

struct buffer *reads_ask_replica(struct upstream *replica, struct reply_slot *slot, unsigned index)
{
    at_replica_begin(slot);
    return upstream_command(replica, slot, index);
}

struct upstream *reads_primary(const struct reply_slot *slot, struct span key)
{
    const struct client *client = client_of(slot->replies);
    struct pool *pool = client_pool(client);
    return pool_shared(pool, pool_node_of(pool, key), slot->resp3, client_lane(client));
}

bool reads_ask_again(struct reply_slot *slot, unsigned index, const char *name, struct span key)
{
    const struct span words[] = {span_of(name), key};
    struct upstream *primary = reads_primary(slot, key);
    if (!upstream_has_room(primary, key.length + 4 * RESP_HEADER_ROOM))
        return false;
    resp_write_command(upstream_command(primary, slot, index), words, 2);
    return true;
}
