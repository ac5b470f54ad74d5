#include "worker/client/footing.h"

#include "base/keymap.h"
#include "redis/topology/redis_place.h"
#include "worker/client/pinned.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

bool footing_is_for(const struct client *client, struct span key)
{
    const struct pinned_footing *footing = &client->pinned.footing;
    return client->pinned.own && pinned_is_held(&client->pinned) && footing->has_slot &&
           footing->slot == pool_slot_of(key);
}

bool footing_leads_to(const struct client *client, int node)
{
    const struct redis_place *there = upstream_node(client->pinned.own);
    const struct redis_place *wanted = pool_place(client_pool(client), node);
    return there && wanted && redis_place_equal(there, wanted);
}

void footing_lead(struct client *client, struct span key)
{
    const struct pool *pool = client_pool(client);
    if (pool_is_cluster(pool) && (client->upstream != client->pinned.own ||
                                  !footing_leads_to(client, pool_node_of(pool, key))))
        client_go_to_key(client, key);
}

/* Two keys with one hash are a matter of who made them up, and of his own transaction. */
bool footing_may_lack(const struct client *client, struct span key)
{
    const struct pinned_footing *footing = &client->pinned.footing;
    return footing_is_for(client, key) && footing->asks && footing->key != keymap_hash(key) &&
           !footing_leads_to(client, pool_node_of(client_pool(client), key));
}

void footing_precede(struct client *client)
{
    struct span word = span_of("ASKING");
    if (client->pinned.footing.asks)
        upstream_precede(client->pinned.own, &word, 1);
}

static bool may_begin_again(const struct client *client, const struct upstream *upstream)
{
    return upstream == client->pinned.own && upstream_is_idle(upstream) &&
           client->state < CLIENT_CLOSING;
}

/* ASKING lasts from before a MULTI to its end, within which it would be a command like another. */
static struct upstream *begin_again(struct client *client, struct upstream *upstream, int node,
                                    bool *asks)
{
    struct pinned_footing *footing = &client->pinned.footing;
    if (!may_begin_again(client, upstream))
        return NULL;
    pinned_begin_at(client, node);
    footing->asks = *asks;
    footing_precede(client);
    *asks = false;
    if (footing->say)
        footing->say(client);
    return client->pinned.own;
}

void footing_begin(struct client *client, struct span key, void (*say)(struct client *client))
{
    client->pinned.footing = (struct pinned_footing){.elsewhere = begin_again,
                                                     .has_slot = true,
                                                     .slot = pool_slot_of(key),
                                                     .key = keymap_hash(key),
                                                     .say = say};
    client_settle(client);
}

/* A command that finds its own way, to the node that the map has, needs longer there than one that
 * goes by the own connection. */
void footing_go_on(struct client *client)
{
    struct pinned_footing *footing = &client->pinned.footing;
    if (footing->elsewhere)
        buffer_finish(&client->pinned.late);
    footing->elsewhere = NULL;
    if (!client->pinned.own)
        *footing = (struct pinned_footing){0};
    else if (footing->asks && pinned_is_held(&client->pinned))
        client_settle(client);
}
