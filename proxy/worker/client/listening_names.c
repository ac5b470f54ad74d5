/* In maps, one of each family: a client may have thousands, and its node may end any of them. */
#include "worker/client/listening_names.h"

#include "base/memory.h"

#include <stdlib.h>

struct listening *listening_of(struct client *client)
{
    if (!client->pinned.listening)
        client->pinned.listening = xcalloc(1, sizeof *client->pinned.listening);
    client->pinned.listening->client = client;
    return client->pinned.listening;
}

static struct subscription *subscription_at(struct keymap_node *node)
{
    return node ? container_of(node, struct subscription, node) : NULL;
}

struct subscription *subscription_find(const struct listening *listening, enum pubsub_family family,
                                       struct span name)
{
    return subscription_at(keymap_find(&listening->names[family], name, keymap_hash(name)));
}

/* ---- a walk ---- */

void subscriptions_begin_walk(struct listening *listening)
{
    listening->walk.family = 0;
    listening->walk.next = listening->names[0].oldest;
}

static struct subscription *take_next(struct listening *listening)
{
    struct subscriptions_walk *walk = &listening->walk;
    struct keymap_node *node;
    while (!(node = walk->next)) {
        if (++walk->family >= PUBSUB_FAMILIES)
            return NULL;
        walk->next = listening->names[walk->family].oldest;
    }
    walk->next = node->newer;
    return subscription_at(node);
}

bool subscriptions_next(struct client *client, void (*act)(struct client *, struct subscription *))
{
    struct listening *listening = client->pinned.listening;
    struct subscription *subscription;
    for (unsigned i = 0; i < NAMES_AT_ONCE && (subscription = take_next(listening)); i++)
        act(client, subscription);
    return listening->walk.family < PUBSUB_FAMILIES;
}

/* ---- which there are ---- */

void subscriptions_show(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    const struct keymap *names = pinned->listening->names;
    pinned->channels = (unsigned)names[PUBSUB_CHANNEL].count;
    pinned->patterns = (unsigned)names[PUBSUB_PATTERN].count;
    pinned->shards = (unsigned)names[PUBSUB_SHARD].count;
    if (pinned->channels || pinned->patterns || pinned->shards)
        pinned->states |= PINNED_LISTENS;
    else
        pinned->states &= ~(unsigned)PINNED_LISTENS;
}

static size_t bytes_of(const struct subscription *subscription)
{
    return sizeof *subscription + subscription_name(subscription).length;
}

struct subscription *subscription_add(struct client *client, enum pubsub_family family,
                                      struct span name)
{
    struct listening *listening = client->pinned.listening;
    struct subscription *subscription = malloc(sizeof *subscription + name.length);
    if (!subscription)
        return NULL;
    *subscription =
        (struct subscription){.family = family, .begins = true, .next = listening->beginning};
    memcpy(subscription->name, name.at, name.length);
    subscription->node.key = (struct span){subscription->name, name.length};
    subscription->node.hash = keymap_hash(subscription->node.key);
    keymap_insert(&listening->names[family], &subscription->node);
    listening->beginning = subscription;
    listening->bytes += bytes_of(subscription);
    subscriptions_show(client);
    return subscription;
}

void subscription_take_out(struct client *client, struct subscription *subscription)
{
    struct listening *listening = client->pinned.listening;
    if (listening->walk.next == &subscription->node)
        listening->walk.next = subscription->node.newer;
    keymap_remove(&listening->names[subscription->family], &subscription->node);
    listening->bytes -= bytes_of(subscription);
    subscriptions_show(client);
}

void subscription_let_go(struct subscription *subscription)
{
    subscription->gone = true;
    if (!subscription->asks)
        free(subscription);
}
