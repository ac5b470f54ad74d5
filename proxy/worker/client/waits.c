#include "worker/client/waits.h"

#include "base/memory.h"
#include "worker/client/pinned_room.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/upstream.h"

static const struct reply_slot_kind fence_kind = {0};

static bool takes_nothing(struct client *client, struct upstream *upstream, struct span frame)
{
    (void)client;
    (void)upstream;
    (void)frame;
    return false;
}

static void lost_wait(struct client *client, struct upstream *upstream)
{
    (void)client;
    (void)upstream;
}

static const struct upstream_owner waiter = {.takes = takes_nothing, .lost = lost_wait};

/* One server is asked as whoever the client has logged in as there. */
static int wait_in_own(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned->waits = xcalloc(1, sizeof *pinned->waits);
    pinned->waits[0].upstream = pinned->own;
    pinned->wait_count = pinned->waiting = 1;
    return 1;
}

int waits_open(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    struct pool *pool = client_pool(client);
    unsigned count = 0;
    if (!pool_is_cluster(pool))
        return wait_in_own(client);
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;)
        count++;
    if (!count)
        return 0;
    if (!pinned_make_room(client, count))
        return pinned_refuse_busy(client);
    pinned->waits = xcalloc(count, sizeof *pinned->waits);
    struct upstream_options options = {.owner = &waiter, .client = client};
    for (int node = NO_NODE; (node = pool_next(pool, node)) != NO_NODE;)
        pinned->waits[pinned->wait_count++].upstream = pool_own(pool, node, &options);
    pinned->waiting = count;
    pinned_count(client, count);
    if (client->replies.first)
        pinned->wait_fence = reply_slot_open(&client->replies, &fence_kind);
    for (unsigned i = 0; i < count && pinned->wait_fence; i++)
        upstream_hold(pinned->waits[i].upstream, true);
    return (int)count;
}

static void each_wait(struct pinned *pinned, void (*act)(struct upstream *upstream))
{
    for (unsigned i = 0; i < pinned->wait_count; i++)
        if (pinned->waits[i].upstream)
            act(pinned->waits[i].upstream);
}

static void give_up(struct upstream *upstream)
{
    upstream_give_up(upstream, "not needed any more");
}

void waits_close(struct client *client, unsigned number, bool all)
{
    struct pinned *pinned = &client->pinned;
    struct upstream *upstream = pinned->waits[number].upstream;
    pinned->waits[number].upstream = NULL;
    if (upstream != pinned->own) {
        upstream_close(upstream);
        pinned_discount(client, 1);
    }
    if (all)
        each_wait(pinned, give_up);
    if (!--pinned->waiting)
        pinned_forget_waits(pinned);
}

void waits_finish(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    for (unsigned i = 0; i < pinned->wait_count; i++)
        if (pinned->waits[i].upstream)
            waits_close(client, i, false);
    if (pinned->wait_fence)
        reply_slot_answered(pinned->wait_fence);
    pinned->wait_fence = NULL;
}

static void let_go(struct upstream *upstream)
{
    upstream_hold(upstream, false);
}

void waits_flush(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    if (pinned_reach(client, &pinned->wait_fence))
        each_wait(pinned, let_go);
}

void waits_check(struct client *client)
{
    each_wait(&client->pinned, upstream_check_progress);
}

void waits_leave(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    for (unsigned i = 0; i < pinned->wait_count; i++) {
        struct upstream *upstream = pinned->waits[i].upstream;
        if (upstream && upstream_route(upstream) != client->serving->route)
            give_up(upstream);
    }
}

bool waits_count(const struct client *client)
{
    const struct pinned *pinned = &client->pinned;
    return pinned->waiting && pinned->wait_is_counted && !pinned->fence && !pinned->wait_fence;
}

void waits_end_count(struct client *client, bool with_error)
{
    client->pinned.wait_end = with_error ? WAIT_UNBLOCKED : WAIT_TIMED_OUT;
}
