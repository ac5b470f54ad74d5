/* Only order ties a reply to what was asked: a post keeps what it has asked for, beside the queue
 * of its connection, which does not know of names.
 */
#include "worker/client/listening_posts.h"

#include "base/memory.h"
#include "redis/topology/redis_place.h"
#include "worker/client/listening_pace.h"
#include "worker/client/pinned_room.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

/* ---- what is asked ---- */

static void send_words(const struct post *post, const char *word, struct span name,
                       struct reply_slot *slot)
{
    const struct span words[] = {span_of(word), name};
    if (slot)
        resp_write_command(upstream_command(post->upstream, slot, 0), words, 2);
    else
        upstream_tell(post->upstream, words, 2);
}

static void note(struct post *post, struct subscription *subscription, bool ends)
{
    struct ask *ask = xcalloc(1, sizeof *ask);
    *ask = (struct ask){.of = subscription, .ends = ends};
    subscription->asks++;
    post->listening->asked++;
    if (post->last)
        post->last->next = ask;
    else
        post->first = ask;
    post->last = ask;
}

/* What is sent over it has to follow the order of these. */
static struct ask take_first(struct post *post)
{
    struct ask *first = post->first, ask = *first;
    post->first = first->next;
    if (!post->first)
        post->last = NULL;
    free(first);
    listening_answered(post->listening);
    if (--ask.of->asks == 0 && ask.of->gone) {
        free(ask.of);
        ask.of = NULL;
    }
    return ask;
}

void post_take_over(struct post *post, struct subscription *subscription)
{
    note(post, subscription, false);
    subscription->post = post;
    subscription->waits = true;
    post->count++;
}

void post_begin(struct post *post, struct subscription *subscription, struct reply_slot *slot)
{
    post_take_over(post, subscription);
    send_words(post, pubsub_word(subscription->family, false), subscription_name(subscription),
               slot);
}

void post_leave(struct subscription *subscription)
{
    struct post *post = subscription->post;
    subscription->post = NULL;
    if (post && --post->count == 0 && post->is_lost)
        free(post);
}

void post_end(struct subscription *subscription, struct reply_slot *slot)
{
    struct post *post = subscription_post(subscription);
    if (post) {
        note(post, subscription, true);
        send_words(post, pubsub_word(subscription->family, true), subscription_name(subscription),
                   slot);
    }
    post_leave(subscription);
}

struct subscription *post_answered(struct post *post, bool refused)
{
    post->refused = NULL;
    if (!post->first)
        return NULL;
    struct ask ask = take_first(post);
    if (!ask.of || ask.ends || ask.of->gone || ask.of->post != post)
        return NULL;
    ask.of->waits = false;
    if (refused)
        post_leave(ask.of);
    if (refused && ask.of->begins)
        post->refused = ask.of;
    return ask.of;
}

bool post_is_answered_by(const struct post *post, const struct pubsub_message *message)
{
    const struct ask *ask = post->first;
    if (!ask || ask->ends != message->ends || ask->of->family != message->family)
        return false;
    struct span name = subscription_name(ask->of);
    return name.length == message->name.length &&
           memcmp(name.at, message->name.at, name.length) == 0;
}

/* ---- where ---- */

bool post_leads_to(const struct post *post, const struct redis_place *place)
{
    const struct redis_place *there = upstream_node(post->upstream);
    return there && place && redis_place_equal(there, place);
}

struct post *post_of(const struct listening *listening, const struct upstream *upstream)
{
    struct post *post = listening ? listening->posts : NULL;
    while (post && post->upstream != upstream)
        post = post->next;
    return post;
}

int post_node_for(const struct client *client, const struct subscription *subscription)
{
    const struct pool *pool = client_pool(client);
    return subscription->family == PUBSUB_SHARD
               ? pool_node_of(pool, subscription_name(subscription))
               : pool_node_for(pool, client->id);
}

static struct post *open_at(struct client *client, struct pool *pool, int node)
{
    struct listening *listening = client->pinned.listening;
    struct upstream_options options = {.resp3 = client->replies.resp3,
                                       .name = client->self.name,
                                       .owner = &listening_owner,
                                       .client = client};
    struct post *post = xcalloc(1, sizeof *post);
    post->upstream = pool_own(pool, node, &options);
    post->listening = listening;
    pinned_count(client, 1);
    post->next = listening->posts;
    listening->posts = post;
    client->pinned.hears = post->upstream;
    return post;
}

struct post *post_at(struct client *client, int node)
{
    struct pool *pool = client_pool(client); /* whose number it is, whatever is closed here */
    const struct redis_place *place = pool_place(pool, node);
    for (struct post *post = client->pinned.listening->posts; post; post = post->next)
        if (post_leads_to(post, place))
            return post;
    posts_close(client, false);
    return pinned_make_room(client, 1) ? open_at(client, pool, node) : NULL;
}

void post_close(struct client *client, struct post *post)
{
    struct post **at = &client->pinned.listening->posts;
    while (*at != post)
        at = &(*at)->next;
    *at = post->next;
    struct post *first = client->pinned.listening->posts;
    client->pinned.hears = first ? first->upstream : NULL;
    while (post->first)
        take_first(post);
    upstream_close(post->upstream);
    pinned_discount(client, 1);
    post->is_lost = true;
    if (!post->count)
        free(post);
}

void posts_close(struct client *client, bool all)
{
    struct post *next = NULL;
    for (struct post *post = client->pinned.listening->posts; post; post = next) {
        next = post->next;
        if (all || (!post->count && !post->first))
            post_close(client, post);
    }
}
