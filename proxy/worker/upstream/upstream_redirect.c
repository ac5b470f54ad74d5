/* MOVED and ASK, which a client that sees one plain Redis must not.
 *
 *   a command ─▶ its node: "MOVED" ─▶ the map learns it ─┐
 *                          "ASK" ────── ASKING before ───┴─▶ the other node ─▶ its reply
 *
 * The order of a client's commands for a key holds: those behind it on the same connection get the
 * same answer, and go on in the order of their replies; what has not been sent yet waits until
 * these are answered (pool.h's `changed`).
 *
 * What runs a client's script may say so without meaning it. It goes where it says if that is a
 * node of the map, and teaches the map nothing: else whoever may send a script could lead all
 * others, and the cache's password, to a server of his own.
 *
 * What is for a node whose connection is lost goes to another, which knows by now who has its keys,
 * and says so: the map may not, and who was emptied to be removed never comes back. It says no
 * other when there is none, and then that fails where it is sent on to.
 *
 *   a command ─▶ lost ─▶ beside: "MOVED" ─▶ its node now
 *
 * Of a server that is doubted only MOVED counts: who is named by ASK got the key from it, as old as
 * it was there.
 *
 * A connection that one client owns mostly has a state that leads nowhere else: there it is an
 * error, which is worth another try. Its owner may know of another (upstream_owner's `elsewhere`),
 * for which it may have closed this one: what that has kept stays until the loop's turn is over.
 */
#include "worker/upstream/upstream_internal.h"

#include "redis/protocol/redis_role.h"
#include "redis/topology/redis_cluster.h"
#include "resp/command.h"
#include "resp/resp_number.h"
#include "worker/upstream/pool.h"

enum { MOST_HOPS = 8 }; /* further on there is no end to it: nodes contradict each other */

static const char lost_text[] = "CLUSTERDOWN the nodes send each other's keys around";

static struct upstream *destination(struct upstream *upstream, int node, bool *asks)
{
    const struct upstream_options *options = &upstream->options;
    if (!upstream_is_own(upstream))
        return pool_lane(upstream->route->pool, node, options->resp3, options->lane);
    if (!options->owner->elsewhere)
        return NULL;
    return options->owner->elsewhere(options->client, upstream, node, asks);
}

static void send_on(struct upstream *upstream, const struct in_flight *request, struct upstream *to,
                    struct span bytes, bool asks)
{
    if (!upstream_has_room(to, bytes.length + 2 * RESP_HEADER_ROOM)) {
        reply_slot_cache_failure(request->slot, request->index, "NESTGUARD out of memory");
        if (upstream_is_own(to)) /* a transaction would lack it */
            upstream_give_up(to, uv_strerror(UV_ENOMEM));
        return;
    }
    counter_add(&upstream->serving->counters.redirected, 1);
    upstream_send_on(to, request->slot, request->index, bytes, request->hops + 1U, asks);
    if (!request->since)
        upstream_be_patient(to, true);
    request->slot->waiting--; /* it waited for one already */
}

static const char moved_text[] = "-" UPSTREAM_ON_ITS_WAY "\r\n";
static const struct span moved = {moved_text, sizeof moved_text - 1};

static const struct span unclear = {
    "-CLUSTERDOWN a node says that another has the key, and not where that is\r\n", 74};

/* The first word of a command as it was sent: "*2\r\n$3\r\nGET\r\n". */
static struct span name_of(struct span bytes)
{
    const char *marker = memchr(bytes.at, '$', bytes.length), *end = bytes.at + bytes.length;
    const char *word = marker ? marker + 1 : end;
    int64_t length;
    bool is_there =
        resp_read_number(&word, end, &length) == RESP_DONE && length >= 0 && length <= end - word;
    return is_there ? (struct span){word, (size_t)length} : (struct span){"", 0};
}

/* The number of the node that has it, from here on for all where that is certain; negative: there
 * is none. */
static int learn(struct upstream *upstream, const struct redis_redirect *redirect, bool is_certain)
{
    struct redis_cluster *cluster = upstream->route->cluster;
    bool changed;
    if (!is_certain) {
        redis_cluster_refresh(cluster);
        return redis_cluster_owner_at(cluster, &redirect->place);
    }
    int node = redis_cluster_follow(cluster, redirect, &changed);
    if (changed)
        pool_tell_changed(upstream->route->pool);
    return node;
}

struct upstream *upstream_beside(struct upstream *upstream)
{
    const struct upstream_options *options = &upstream->options;
    struct pool *pool = upstream->route->pool;
    if (!upstream->keeps || upstream_is_own(upstream) || !upstream_is_lost(upstream))
        return upstream;
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;) {
        struct upstream *other = pool_known_lane(pool, node, options->resp3, options->lane);
        if (other && upstream_is_up(other) && !upstream_is_doubted(other))
            return other;
    }
    return upstream;
}

bool upstream_redirect(struct upstream *upstream, const struct in_flight *request,
                       struct span *reply, struct span bytes)
{
    struct redis_cluster *cluster = upstream->route->cluster;
    struct redis_redirect redirect;
    if (reply->length < 3)
        return false;
    if (cluster && redis_is_cluster_down(reply->at + 1, reply->length - 3))
        redis_cluster_refresh(cluster);
    if (!redis_redirect_is_meant(reply->at + 1, reply->length - 3))
        return false;
    bool is_certain = !command_words_errors(name_of(bytes));
    if (!redis_redirect_read(&redirect, reply->at + 1, reply->length - 3, &upstream->node)) {
        if (cluster && is_certain)
            redis_cluster_refresh(cluster); /* which may tell where that is */
        if (is_certain)
            *reply = unclear;
        return false;
    }
    if (!cluster) { /* all is about to end */
        reply_slot_cache_failure(request->slot, request->index, lost_text);
        return true;
    }
    if (request->leads_on && redirect.asks)
        return false;
    int node = learn(upstream, &redirect, is_certain);
    bool is_lost = (is_certain && node < 0) || request->hops >= MOST_HOPS, asks = redirect.asks;
    struct upstream *to = is_lost || node < 0 ? NULL : destination(upstream, node, &asks);
    if (!is_lost && !to) {
        *reply = moved;
        return false;
    }
    if (to && to != upstream) /* which would say so again, and the bytes are of its buffer */
        send_on(upstream, request, to, bytes, asks);
    else
        reply_slot_cache_failure(request->slot, request->index, lost_text);
    return true;
}
