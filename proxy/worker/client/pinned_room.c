/* A connection that is kept just in case is given up for who needs one. */
#include "worker/client/pinned_room.h"

#include "guard/fair_share.h"
#include "worker/upstream/upstream.h"

#include <errno.h>
#include <stdlib.h>

enum { FEW = 100 }; /* a hundredth of the places */

struct pinned_track *pinned_track_of(const struct pinned *pinned, const struct upstream *upstream)
{
    for (unsigned i = 0; i < pinned->tracking.count; i++)
        if (pinned->tracking.at[i].upstream == upstream)
            return &pinned->tracking.at[i];
    return NULL;
}

/* At the head nothing is before it, at the tail nothing behind it. */
static bool has_only_a_refusal(const struct client *client)
{
    const struct reply_slot *refused = client->acquaintance.refused;
    return refused && client->replies.first == refused && client->replies.last == refused;
}

bool pinned_is_idle(const struct client *client)
{
    return client->pinned.own && !pinned_is_held(&client->pinned) &&
           (!client->replies.first || has_only_a_refusal(client));
}

void pinned_answer_fence(struct pinned *pinned)
{
    if (pinned->fence)
        reply_slot_answered(pinned->fence);
    pinned->fence = NULL;
}

/* At its queue's head the fence has nothing before it: what went over the shared connection is
 * answered. */
bool pinned_reach(struct client *client, struct reply_slot **fence)
{
    struct reply_slot *slot = *fence;
    if (!slot || client->replies.first != slot)
        return false;
    *fence = NULL;
    reply_slot_answered(slot);
    return true;
}

void pinned_forget_waits(struct pinned *pinned)
{
    free(pinned->waits);
    pinned->waits = NULL;
    pinned->wait_count = pinned->waiting = 0;
}

void pinned_give_back(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned_end_login(client);
    if (pinned->waits && pinned->waits[0].upstream == pinned->own)
        pinned_forget_waits(pinned); /* of a client that goes: nobody hears of its end */
    if (!pinned_track_of(pinned, pinned->own)) {
        upstream_close(pinned->own);
        pinned_discount(client, 1);
    }
    pinned->own = NULL;
    redirection_end(&pinned->redirected);
    pinned->footing = (struct pinned_footing){0};
    buffer_finish(&pinned->late); /* it was said there */
}

void pinned_end(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned_answer_fence(pinned);
    pinned_give_back(client);
    pinned->awaited = 0;
    client->upstream = client_shared(client, client->replies.resp3);
}

void pinned_count(struct client *client, unsigned count)
{
    client->serving->own_connections += count;
    client->host->own_connections += count;
}

void pinned_discount(struct client *client, unsigned count)
{
    client->serving->own_connections -= count;
    client->host->own_connections -= count;
}

bool pinned_has_room(const struct client *client, unsigned count)
{
    struct fair_share all = {.most = client->serving->own_limit,
                             .used = client->serving->own_connections + count,
                             .host = client->host->own_connections + count,
                             .few = FEW};
    return fair_share_allows(&all);
}

/* When there is no room, some other client may hold on to a connection just in case. Once all were
 * looked at, none is for the rest of the turn: thousands may ask in one. */
bool pinned_make_room(struct client *client, unsigned count)
{
    struct clients *clients = client->clients;
    uint64_t turn = client->serving->turn.number + 1;
    struct client *other = clients->none_idle == turn ? NULL : clients->first;
    while (!pinned_has_room(client, count) && other) {
        if (pinned_is_idle(other) && !other->replies.slow) /* it would ask for one again */
            pinned_end(other);
        other = other->following;
    }
    if (!other)
        clients->none_idle = turn;
    return pinned_has_room(client, count);
}

/* ---- of strangers ---- */

/* Half, and of a single place that one. */
static bool login_has_room(const struct client *client)
{
    struct fair_share half = {.most = (client->serving->own_limit + 1) / 2,
                              .used = client->clients->logins + 1,
                              .host = client->host->logins + 1,
                              .few = FEW};
    return fair_share_allows(&half);
}

bool pinned_make_login_room(struct client *client)
{
    struct clients *clients = client->clients;
    uint64_t turn = client->serving->turn.number + 1;
    struct client *other = clients->no_idle_login == turn ? NULL : clients->first;
    for (; !login_has_room(client) && other; other = other->following)
        if (other->pinned.is_login && pinned_is_idle(other))
            pinned_end(other);
    if (!login_has_room(client))
        clients->no_idle_login = turn;
    return login_has_room(client) && pinned_make_room(client, 1);
}

void pinned_count_login(struct client *client)
{
    client->pinned.is_login = true;
    client->clients->logins++;
    client->host->logins++;
}

void pinned_end_login(struct client *client)
{
    client->clients->logins -= client->pinned.is_login;
    client->host->logins -= client->pinned.is_login;
    client->pinned.is_login = false;
}

const char *pinned_count_busy(struct client *client)
{
    const struct serving *serving = client->serving;
    struct worker_counters *counters = &client->serving->counters;
    bool is_for_all = pinned_has_room(client, 1) || serving->own_connections >= serving->own_limit;
    counter_add(is_for_all ? &counters->own_refused : &counters->own_refused_host, 1);
    return is_for_all
               ? "NESTGUARD busy: own_connections are used up"
               : "NESTGUARD busy: own_connections are used up, but for hosts that have fewer";
}

int pinned_refuse_busy(struct client *client)
{
    resp_write_error(client_reply(client), "%s", pinned_count_busy(client));
    return -EBUSY;
}
