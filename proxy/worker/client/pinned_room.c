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

/* Those of strangers are half of all, and of a single place that one. */
static struct fair_share share_of(const struct client *client, unsigned count, enum own_kind kind)
{
    const struct serving *serving = client->serving;
    const struct host *host = client->host;
    bool is_login = kind == OWN_LOGIN;
    return (struct fair_share){
        .most = is_login ? (serving->own_limit + 1) / 2 : serving->own_limit,
        .used = (is_login ? client->clients->logins : serving->own_connections) + count,
        .host = (is_login ? host->logins : host->own_connections) + count,
        .few = FEW};
}

static bool has_room(const struct client *client, unsigned count, enum own_kind kind)
{
    struct fair_share share = share_of(client, count, kind);
    return fair_share_allows(&share);
}

bool pinned_has_room(const struct client *client, unsigned count)
{
    return has_room(client, count, OWN_ANY);
}

/* Whether places alone are lacking, whoever gives them up. Who has used up his host's share is
 * helped by that host's own: what others keep counts as theirs, or it would be whose who asks most
 * often. */
static bool lacks_places(const struct client *client, unsigned count, enum own_kind kind)
{
    struct fair_share full = share_of(client, count, kind);
    full.used = full.most;
    return fair_share_allows(&full);
}

/* A slow reader would ask for one again. */
static bool is_spare(const struct client *client, enum own_kind kind)
{
    return pinned_is_idle(client) &&
           (kind == OWN_LOGIN ? client->pinned.is_login : !client->replies.slow);
}

/* When there is no room, some other client may hold on to a connection just in case. Once all were
 * looked at none does, until one is noted: thousands may ask meanwhile. */
static bool make_room(struct client *client, unsigned count, enum own_kind kind)
{
    if (has_room(client, count, kind))
        return true;
    struct clients *clients = client->clients;
    bool of_all = lacks_places(client, count, kind);
    bool *none_idle = of_all ? &clients->none_idle[kind] : &client->host->none_idle[kind];
    struct client *other = *none_idle ? NULL : clients->first;
    for (; other && !has_room(client, count, kind); other = other->following)
        if ((of_all || other->host == client->host) && is_spare(other, kind))
            pinned_end(other);
    *none_idle = !has_room(client, count, kind);
    return !*none_idle;
}

void pinned_note_idle(struct client *client)
{
    for (enum own_kind kind = 0; kind < OWN_KINDS; kind++)
        if (is_spare(client, kind))
            client->clients->none_idle[kind] = client->host->none_idle[kind] = false;
}

bool pinned_make_room(struct client *client, unsigned count)
{
    return make_room(client, count, OWN_ANY);
}

/* ---- of strangers ---- */

bool pinned_make_login_room(struct client *client)
{
    return make_room(client, 1, OWN_LOGIN) && pinned_make_room(client, 1);
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
