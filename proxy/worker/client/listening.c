/* A command is sent name by name, each to its node, and answered when all of them are: by
 * confirmations that are written here, since a node counts only what is heard at it. Nothing else
 * of the client is under way then, so that it hears nothing which it published before.
 *
 * What a reply says of a name counts only while the name is asked for at that node. A message may
 * still come from where it was heard before; who has moved away says so there (post_end()), and
 * then has none of it twice.
 */
#include "worker/client/listening.h"

#include "base/clock.h"
#include "redis/topology/redis_cluster.h"
#include "worker/client/listening_posts.h"
#include "worker/client/pinned_room.h"
#include "worker/client/tracking.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum {
    RETRY_MS = 500,        /* from one attempt to have again what is lacking to the next */
    LACKING_MS = 60000,    /* then the client is closed */
    CONFIRMATION_ROOM = 64 /* beside the name */
};

static const struct upstream_owner owner;

/* ---- commands ---- */

/* One server counts shard channels apart from all others. */
static void confirm(struct client *client, enum pubsub_family family, bool ends, struct span name)
{
    const struct pinned *pinned = &client->pinned;
    struct buffer *out = &pinned->listening->reply;
    const char *word = pubsub_word(family, ends);
    buffer_printf(out, "%c3\r\n", client->replies.resp3 ? '>' : '*');
    resp_write_bulk(out, word, strlen(word));
    if (name.at)
        resp_write_bulk(out, name.at, name.length);
    else
        resp_write_nil(out, client->replies.resp3);
    resp_write_integer(out, family == PUBSUB_SHARD ? pinned->shards
                                                   : pinned->channels + pinned->patterns);
}

static void take_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    struct buffer *error = &client_of(slot->replies)->pinned.listening->error;
    (void)index;
    if (!buffer_length(error))
        resp_write_error(error, "%s", why);
}

static void take_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct buffer *error = &client_of(slot->replies)->pinned.listening->error;
    (void)index;
    if (reply.at[0] == '-' && !buffer_length(error))
        buffer_append(error, reply.at, reply.length);
}

/* What has begun stays, or ends where it was not refused. */
static void settle_beginning(struct client *client, bool failed)
{
    struct listening *listening = client->pinned.listening;
    struct subscription *next = NULL, *subscription = listening->beginning;
    listening->beginning = NULL;
    for (; subscription; subscription = next) {
        next = subscription->next;
        subscription->begins = false;
        if (!failed)
            continue;
        post_end(subscription, NULL);
        subscription_take_out(client, subscription);
        subscription_let_go(subscription);
    }
}

static void finish(struct reply_slot *slot)
{
    struct client *client = client_of(slot->replies);
    struct listening *listening = client->pinned.listening;
    bool failed = buffer_length(&listening->error);
    struct buffer *said = failed ? &listening->error : &listening->reply;
    settle_beginning(client, failed);
    slot->muted = slot->muted && failed; /* replies that are off do not keep a confirmation back */
    reply_slot_append(slot, reply_slot_output(slot), buffer_span(said));
    buffer_finish(&listening->reply);
    buffer_finish(&listening->error);
}

static const struct reply_slot_kind begin_kind = {
    .on_cache = take_reply, .on_cache_failure = take_failure, .finish = finish};

/* However that ends, the client hears no more of it. */
static void ignore_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)slot;
    (void)index;
    (void)reply;
}

static void ignore_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)slot;
    (void)index;
    (void)why;
}

static const struct reply_slot_kind end_kind = {
    .on_cache = ignore_reply, .on_cache_failure = ignore_failure, .finish = finish};

static int node_for(const struct client *client, const struct subscription *subscription)
{
    const struct pool *pool = client_pool(client);
    return subscription->family == PUBSUB_SHARD
               ? pool_node_of(pool, subscription_name(subscription))
               : pool_node_for(pool, client->id);
}

/* What went wrong; NULL: nothing did. */
static const char *begin_one(struct client *client, enum pubsub_family family, struct span name,
                             struct reply_slot *slot)
{
    static const char no_memory[] = "NESTGUARD out of memory";
    struct listening *listening = client->pinned.listening;
    if (!buffer_try_reserve(&listening->reply, name.length + CONFIRMATION_ROOM))
        return no_memory;
    if (!subscription_find(listening, family, name)) {
        struct subscription *subscription = subscription_add(client, family, name);
        if (!subscription)
            return no_memory;
        struct post *post = post_at(client, node_for(client, subscription), &owner);
        if (!post)
            return pinned_count_busy(client);
        if (!upstream_has_room(post->upstream, name.length + CONFIRMATION_ROOM))
            return no_memory;
        post_begin(post, subscription, slot);
    }
    confirm(client, family, false, name);
    return NULL;
}

void listening_begin(struct client *client, enum pubsub_family family, const struct span *names,
                     size_t count)
{
    listening_of(client);
    struct reply_slot *slot = reply_slot_open(&client->replies, &begin_kind);
    const char *why = NULL;
    for (size_t i = 0; i < count && !why; i++)
        why = begin_one(client, family, names[i], slot);
    if (why)
        take_failure(slot, 0, why);
    client_settle(client);
    reply_slot_answered(slot);
}

/* Of somebody else's name nothing ends, and that is confirmed. */
static bool end_one(struct client *client, enum pubsub_family family, struct span name,
                    struct reply_slot *slot)
{
    struct listening *listening = client->pinned.listening;
    struct subscription *subscription = name.at ? subscription_find(listening, family, name) : NULL;
    size_t room = name.length + CONFIRMATION_ROOM;
    if (!buffer_try_reserve(&listening->reply, room))
        return false;
    if (subscription) {
        post_end(subscription, slot);
        subscription_take_out(client, subscription);
    }
    confirm(client, family, true, name);
    if (subscription)
        subscription_let_go(subscription);
    return true;
}

/* With a confirmation for each, or one if there is none. */
static bool end_all(struct client *client, enum pubsub_family family, struct reply_slot *slot)
{
    const struct keymap *names = &client->pinned.listening->names[family];
    bool can = names->count || end_one(client, family, (struct span){NULL, 0}, slot);
    while (can && names->count)
        can = end_one(client, family, names->oldest->key, slot);
    return can;
}

void listening_end(struct client *client, enum pubsub_family family, const struct span *names,
                   size_t count)
{
    listening_of(client);
    struct reply_slot *slot = reply_slot_open(&client->replies, &end_kind);
    bool can = count || end_all(client, family, slot);
    for (size_t i = 0; i < count && can; i++)
        can = end_one(client, family, names[i], slot);
    if (!can)
        reply_slot_starve(slot);
    client_settle(client);
    reply_slot_answered(slot);
}

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
    const struct post *post = subscription->post;
    return post && (subscription->family == PUBSUB_SHARD
                        ? post_leads_to(post, pool_place(pool, node))
                        : redis_map_owns(pool_map(pool), upstream_node(post->upstream)));
}

/* Where it was heard it ends first: no message comes twice. */
static void put_in_place(struct client *client, struct subscription *subscription)
{
    struct listening *listening = client->pinned.listening;
    int node = node_for(client, subscription);
    bool is_left = subscription->begins || is_in_place(client, subscription, node);
    listening->lacks |= !is_left || !subscription_is_heard(subscription);
    if (is_left || client->state >= CLIENT_LEAVING)
        return;
    post_end(subscription, NULL);
    if (node == NO_NODE)
        return;
    struct post *post = post_at(client, node, &owner);
    if (post && upstream_has_room(post->upstream,
                                  subscription_name(subscription).length + CONFIRMATION_ROOM))
        post_begin(post, subscription, NULL);
    else
        client_leave(client);
}

/* What is asked for here is looked at again: it may be refused, or be lost. */
static void put_all_in_place(struct client *client, uint64_t now)
{
    struct listening *listening = client->pinned.listening;
    listening->tried = now;
    listening->lacks = false;
    subscriptions_each(client, put_in_place);
    if (!listening->lacks)
        listening->since = 0;
    else if (!listening->since)
        listening->since = now;
    else if (now - listening->since > LACKING_MS)
        client_leave(client);
}

void listening_follow(struct client *client)
{
    if (client->pinned.states & PINNED_LISTENS)
        put_all_in_place(client, clock_ms());
}

/* ---- what comes ---- */

/* The client may have switched protocols since: messages are the same in both, but for the sign. Of
 * what a SUBSCRIBE under way names some may have begun, and it is the last: they come behind it. */
static void hear(struct client *client, struct post *post, struct span frame)
{
    const char *sign = client->replies.resp3 ? ">" : "*";
    struct upstream *of = client->pinned.listening->beginning ? NULL : post->upstream;
    if (frame.at[0] != sign[0]) {
        tracking_push(client, of, span_of(sign));
        frame = (struct span){frame.at + 1, frame.length - 1};
    }
    tracking_push(client, of, frame);
}

/* By the node itself, since the slot is another's by now. The map may know whose. */
static void take_end(struct client *client, struct post *post, const struct pubsub_message *message)
{
    struct subscription *subscription =
        subscription_find(client->pinned.listening, message->family, message->name);
    if (!subscription || subscription->post != post || !subscription_is_heard(subscription))
        return;
    lack(client, post);
    if (is_in_place(client, subscription, node_for(client, subscription)))
        post_leave(subscription);
    else
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

static void leave_lost(struct client *client, struct subscription *subscription)
{
    (void)client;
    if (subscription->post && subscription->post->is_lost)
        post_leave(subscription);
}

static void lost(struct client *client, struct upstream *upstream)
{
    struct post *post = post_of(client->pinned.listening, upstream);
    bool is_elsewhere = upstream_route(upstream) != client->serving->route;
    bool had = post->count;
    post->is_lost = true;
    if (had)
        lack(client, post);
    subscriptions_each(client, leave_lost);
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
    struct post *post = subscription ? post_at(client, node, &owner) : NULL;
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

static const struct upstream_owner owner = {
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
    else if (listening->lacks && now - listening->tried >= RETRY_MS)
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

static void forget(struct client *client, struct subscription *subscription)
{
    subscription_take_out(client, subscription);
    post_leave(subscription);
    subscription_let_go(subscription);
}

void listening_forget(struct client *client)
{
    struct listening *listening = client->pinned.listening;
    if (!listening)
        return;
    subscriptions_each(client, forget);
    posts_close(client, true);
    for (unsigned i = 0; i < PUBSUB_FAMILIES; i++)
        keymap_finish(&listening->names[i]);
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
