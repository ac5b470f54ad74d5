/* In maps, one of each family: a client may have thousands, and its node may end any of them. */
#include "worker/client/listening_names.h"

#include "base/memory.h"

#include <stdlib.h>

struct listening *listening_of(struct client *client)
{
    if (!client->pinned.listening)
        client->pinned.listening = xcalloc(1, sizeof *client->pinned.listening);
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

void subscriptions_each(struct client *client, void (*act)(struct client *, struct subscription *))
{
    struct keymap_node *next = NULL;
    for (unsigned i = 0; i < PUBSUB_FAMILIES; i++)
        for (struct keymap_node *node = client->pinned.listening->names[i].oldest; node;
             node = next) {
            next = node->newer;
            act(client, subscription_at(node));
        }
}

/* How many there are, where others see it. */
static void show(struct client *client)
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
    show(client);
    return subscription;
}

void subscription_take_out(struct client *client, struct subscription *subscription)
{
    struct listening *listening = client->pinned.listening;
    keymap_remove(&listening->names[subscription->family], &subscription->node);
    listening->bytes -= bytes_of(subscription);
    show(client);
}

void subscription_let_go(struct subscription *subscription)
{
    subscription->gone = true;
    if (!subscription->asks)
        free(subscription);
}
