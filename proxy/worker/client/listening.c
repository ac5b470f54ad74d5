/* What a reply says of a name counts only while the name is asked for at that node. A message may
 * still come from where it was heard before; who has moved away says so there (post_end()), and
 * then has none of it twice.
 *
 * When slots move, or nodes are lost, all names are looked through, in pieces: until it comes to
 * one that is out of its place, that is as if its node had been slow to say so.
 */
#include "worker/client/listening.h"

#include "base/clock.h"
#include "redis/topology/redis_cluster.h"
#include "worker/client/listening_commands.h"
#include "worker/client/listening_pace.h"
#include "worker/client/listening_posts.h"
#include "worker/client/listening_remains.h"
#include "worker/client/tracking.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum {
    RETRY_MS = 500,    /* from one attempt to have again what is lacking to the next */
    LACKING_MS = 60000 /* then the client is closed */
};

/* ---- following ---- */

/* Of what it heard here, by the cluster that it still listens in. */
static void lack(struct client *client, const struct post *post)
{
    const struct cache_route *route = upstream_route(post->upstream);
    client->pinned.listening->lacks = true;
    if (route->cluster)
        redis_cluster_refresh(route->cluster);
}

/* Any node of the cluster hears of other channels, whatever it has. */
static bool is_in_place(const struct client *client, const struct subscription *subscription,
                        int node)
{
    const struct pool *pool = client_pool(client);
    const struct post *post = subscription_post(subscription);
    return post && (subscription->family == PUBSUB_SHARD
                        ? post_leads_to(post, pool_place(pool, node))
                        : redis_map_owns(pool_map(pool), upstream_node(post->upstream)));
}

/* Where it was heard it ends first: no message comes twice. */
static void put_in_place(struct client *client, struct subscription *subscription)
{
    struct listening *listening = client->pinned.listening;
    int node = post_node_for(client, subscription);
    bool is_left = subscription->begins || is_in_place(client, subscription, node);
    bool waits = subscription->begins && subscription_post(subscription);
    listening->lacks |= !is_left || !(waits || subscription_is_heard(subscription));
    if (is_left || client->state >= CLIENT_LEAVING)
        return;
    post_end(subscription, NULL);
    if (node == NO_NODE)
        return;
    struct post *post = post_at(client, node);
    if (post && upstream_has_room(post->upstream,
                                  subscription_name(subscription).length + CONFIRMATION_ROOM))
        post_begin(post, subscription, NULL);
    else
        client_leave(client);
}

static void begin_walk(struct client *client, uint64_t now)
{
    struct listening *listening = client->pinned.listening;
    listening->tried = now;
    listening->lacks = false;
    listening->walk.is_under_way = true;
    listening->walk.again = false;
    subscriptions_begin_walk(listening);
}

static void end_walk(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    listening->walk.is_under_way = false;
    if (!listening->lacks)
        listening->since = 0;
    else if (!listening->since)
        listening->since = listening->tried;
    else if (listening->tried - listening->since > LACKING_MS)
        client_leave(client);
    if (listening->walk.again)
        begin_walk(client, clock_ms());
}

static void walk_on(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    if (!subscriptions_next(client, put_in_place))
        end_walk(client);
    if (listening->walk.is_under_way)
        listening_go_on(listening, &listening->walk.task);
}

static void on_walk(struct turn_task *task)
{
    struct client *client = container_of(task, struct listening, walk.task)->client;
    if (client->state >= CLIENT_CLOSING)
        return;
    turn_worked(&client->serving->turn, NAMES_AT_ONCE);
    walk_on(client);
}

/* What is asked for here is looked at again: it may be refused, or be lost. */
static void put_all_in_place(struct client *client, uint64_t now)
{
    struct subscriptions_walk *walk = &client->pinned.listening->walk;
    walk->task.run = on_walk; /* of TURN_READ, as zeroed */
    begin_walk(client, now);
    walk_on(client);
}

/* A walk under way comes to its end before it begins again, lest what is last never has its turn.
 */
static void look_through(struct client *client)
{
    struct subscriptions_walk *walk = &client->pinned.listening->walk;
    if (walk->is_under_way)
        walk->again = true;
    else
        put_all_in_place(client, clock_ms());
}

void listening_follow(struct client *client)
{
    if (client->pinned.states & PINNED_LISTENS)
        look_through(client);
}

/* ---- what comes ---- */

/* Before the reply to an UNSUBSCRIBE that has yet to reach this node with names that it hears. */
static void push_before(struct client *client, const struct reply_slot *ending, struct span bytes)
{
    if (client->state >= CLIENT_CLOSING || replies_have_ended(&client->replies))
        return;
    replies_push(&client->replies, ending, bytes);
    if (replies_waiting(&client->replies) > serving_config(client->serving)->max_output)
        client_drop(client);
}

/* Of what a SUBSCRIBE under way names some may have begun, and it is the last: they come behind it.
 */
static void push(struct client *client, const struct post *post, struct span bytes)
{
    const struct listening *listening = client->pinned.listening;
    const struct reply_slot *ending = listening_ending_slot(listening);
    if (ending)
        push_before(client, ending, bytes);
    else
        tracking_push(client, listening->beginning ? NULL : post->upstream, bytes);
}

/* The client may have switched protocols since: messages are the same in both, but for the sign. */
static void hear(struct client *client, const struct post *post, struct span frame)
{
    const char *sign = client->replies.resp3 ? ">" : "*";
    if (frame.at[0] != sign[0]) {
        push(client, post, span_of(sign));
        frame = (struct span){frame.at + 1, frame.length - 1};
    }
    push(client, post, frame);
}

/* By the node itself, since the slot is another's by now. The map may know whose. */
static void take_end(struct client *client, struct post *post, const struct pubsub_message *message)
{
    struct subscription *subscription =
        subscription_find(client->pinned.listening, message->family, message->name);
    if (!subscription || subscription->post != post || !subscription_is_heard(subscription))
        return;
    lack(client, post);
    bool is_much = listening_has_asked_much(client->pinned.listening);
    if (is_much || is_in_place(client, subscription, post_node_for(client, subscription)))
        post_leave(subscription);
    if (is_much)
        look_through(client);
    else if (subscription->post)
        put_in_place(client, subscription);
}

/* Other errors than these pass: a slot or node that is on its way, a cluster that is down. */
static bool is_refusal(struct span reply)
{
    return span_starts(reply, "-ERR") || span_starts(reply, "-NOPERM");
}

/* Of a command the reply's slot hears. */
static void take_answer(struct client *client, struct post *post, struct span reply)
{
    bool refused = reply.at[0] == '-';
    const struct subscription *subscription = post_answered(post, refused);
    if (!subscription || !refused || subscription->begins)
        return;
    lack(client, post);
    if (is_refusal(reply))
        client_leave(client);
}

static bool takes(struct client *client, struct upstream *upstream, struct span frame)
{
    struct post *post = post_of(client->pinned.listening, upstream);
    struct pubsub_message message = {.kind = PUBSUB_NONE};
    if (frame.at[0] == '>' || frame.at[0] == '*')
        message = pubsub_read(frame);
    if (message.kind == PUBSUB_MESSAGE) {
        hear(client, post, frame);
        return true;
    }
    if (message.kind == PUBSUB_CONFIRMATION &&
        (!upstream_awaits_reply(upstream) || !post_is_answered_by(post, &message))) {
        take_end(client, post, &message);
        return true;
    }
    take_answer(client, post, frame);
    return false;
}

static void lost(struct client *client, struct upstream *upstream)
{
    struct post *post = post_of(client->pinned.listening, upstream);
    bool is_elsewhere = upstream_route(upstream) != client->serving->route;
    bool had = post->count;
    if (had)
        lack(client, post);
    post_close(client, post);
    if (had && is_elsewhere)
        client_leave(client);
}

/* What begins has been refused there, and is asked for where that has pointed to. What was learned
 * by it may have had others put in their place, and this post closed. */
static struct upstream *elsewhere(struct client *client, struct upstream *upstream, int node,
                                  bool *asks)
{
    (void)asks;
    const struct post *there = post_of(client->pinned.listening, upstream);
    struct subscription *subscription = there ? there->refused : NULL;
    struct post *post = subscription ? post_at(client, node) : NULL;
    if (post && post->upstream != upstream)
        post_take_over(post, subscription);
    return post ? post->upstream : NULL;
}

/* It has no other state than what is heard. */
static bool may_ping(const struct client *client, const struct upstream *upstream)
{
    (void)client;
    (void)upstream;
    return true;
}

const struct upstream_owner listening_owner = {
    .takes = takes, .lost = lost, .elsewhere = elsewhere, .may_ping = may_ping};

/* ---- its life ---- */

void listening_read(struct client *client, bool wanted)
{
    const struct listening *listening = client->pinned.listening;
    for (struct post *post = listening ? listening->posts : NULL; post; post = post->next)
        upstream_read(post->upstream, wanted);
}

static bool is_out_of_place(const struct client *client, const struct post *post)
{
    const struct redis_map *map = pool_map(client_pool(client));
    return post->count && map && !redis_map_owns(map, upstream_node(post->upstream));
}

void listening_check(struct client *client, uint64_t now)
{
    struct listening *listening = client->pinned.listening;
    if (!listening || client->state >= CLIENT_CLOSING)
        return;
    for (struct post *post = listening->posts; post; post = post->next) {
        upstream_check_progress(post->upstream);
        listening->lacks |= is_out_of_place(client, post);
    }
    const struct pool *pool = client_pool(client);
    posts_close(client, false);
    client_leave_pool(client, pool);
    if (!listening->posts && !(client->pinned.states & PINNED_LISTENS) && !client->replies.first)
        listening_forget(client);
    else if (listening->lacks && !listening->walk.is_under_way &&
             now - listening->tried >= RETRY_MS)
        put_all_in_place(client, now);
}

/* As with state on its own connection: it keeps to the cache that was, for as long as that is
 * allowed. */
void listening_move(struct client *client, bool late)
{
    bool has_post = client->pinned.hears;
    bool is_elsewhere = client_pool(client) != client->serving->pool;
    if (client->pinned.states & PINNED_LISTENS && (!has_post || (late && is_elsewhere)))
        client_leave(client);
}

void listening_forget(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    if (!listening)
        return;
    posts_close(client, true);
    listening_command_end(listening);
    turn_cancel(&client->serving->turn, &listening->walk.task);
    listening_leave_remains(client);
    buffer_finish(&listening->reply);
    buffer_finish(&listening->error);
    free(listening);
    client->pinned.listening = NULL;
}

size_t listening_bytes(const struct client *client)
{
    const struct listening *listening = client->pinned.listening;
    if (!listening)
        return 0;
    size_t bytes = listening->bytes + listening->reply.size;
    for (const struct post *post = listening->posts; post; post = post->next)
        bytes += upstream_memory(post->upstream);
    return bytes;
}
