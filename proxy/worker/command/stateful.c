/* A state begins and ends when its command is dispatched, where the command's success is not in
 * doubt; else with its reply, and the client settles until that has come: then nothing is
 * dispatched on an assumption. MULTI is the exception (multi.c).
 */
#include "worker/command/stateful.h"

#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/command/bound.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/lookup.h"
#include "worker/command/keys/membership.h"
#include "worker/command/keys/telling.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write.h"
#include "worker/command/multi.h"
#include "worker/command/relaying.h"
#include "worker/command/wait.h"
#include "worker/command/watching.h"
#include "worker/upstream/upstream.h"

static void forward_in_own(struct client *client, const struct request *request)
{
    /* At once: what waits for a connection of its own leaves when that comes up. */
    if (upstream_is_doubted(client->upstream) && telling_in_doubt(client, request))
        request_forward_telling(request, client);
    else if (pinned_begin(client) == 0)
        telling_forward(client, request);
}

/* ---- subscriptions, and what else comes unasked ---- */

/* A confirmation comes also to who has switched replies off; an error does not. */
static void subscribe_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    slot->muted = slot->muted && reply_is_error(reply);
    request_take_reply(slot, index, reply);
}

static const struct reply_slot_kind subscribe_kind = {.on_cache = subscribe_reply,
                                                      .on_cache_failure = request_take_failure};

/* `messages` answer it; see pinned.c for which of them is its reply. */
static void subscribe_to(struct client *client, const struct request *request, size_t messages)
{
    if (pinned_begin(client) < 0)
        return;
    client->pinned.awaited = messages;
    client->pinned.subscribing = request_forward_as(request, client, &subscribe_kind);
    client_settle(client);
}

static void subscribe(struct client *client, const struct request *request)
{
    if (request->count > 1)
        subscribe_to(client, request, request->count - 1);
    else
        request_forward(request, client);
}

/* Without names it ends all of its kind, with a message for each, or one if there is none. */
static void unsubscribe(struct client *client, const struct request *request)
{
    unsigned all = pinned_subscriptions(&client->pinned, request->command->name);
    subscribe_to(client, request, request->count > 1 ? request->count - 1 : all ? all : 1);
}

static void monitor_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (request_take_change(slot, reply, reply_is_ok(reply)))
        client_of(slot->replies)->pinned.states |= PINNED_MONITOR;
}

static const struct reply_slot_kind monitor_kind = {.on_cache = monitor_reply,
                                                    .on_cache_failure = request_take_failure};

/* Nothing more is served before it is known whether lines will come between replies. */
static void monitor(struct client *client, const struct request *request)
{
    bool again = client->pinned.states & PINNED_MONITOR; /* Redis says nothing to that */
    if (again || pinned_begin(client) < 0)
        return;
    request_forward_as(request, client, &monitor_kind);
    client_settle(client);
}

/* ---- other states ---- */

/* While it waits nobody is told that the key which it is to make is not there. */
static int forward_waiting(struct client *client, const struct request *request)
{
    bool writes = request->command->first_key && !(client->pinned.states & PINNED_OTHER_DB) &&
                  command_arity_ok(request->command, request->count);
    if (writes)
        return write_dispatch(client, request);
    telling_forward(client, request);
    return 0;
}

/* Inside MULTI nothing waits: Redis answers such a command at once. */
static void block(struct client *client, const struct request *request)
{
    bool queued = client->pinned.states & PINNED_MULTI;
    if (!queued && strcmp(request->command->name, "WAIT") == 0) {
        wait_dispatch(client, request);
        return;
    }
    if (pinned_begin(client) < 0)
        return;
    if (forward_waiting(client, request) == 0)
        upstream_be_patient(client->upstream, !queued);
    else if (queued)
        multi_spoil(client, REFUSED_NO_ROOM);
    else
        resp_write_error(client_reply(client), "%s", write_refusal);
}

static void ended_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    request_take_reply(slot, index, reply);
    if (client->pinned.own)
        pinned_end(client);
}

static const struct reply_slot_kind ended_kind = {.on_cache = ended_reply,
                                                  .on_cache_failure = request_take_failure};

/* Over a connection that is only for this, unless the client has one: those that others share may
 * wait for the script. */
static void end_script(struct client *client, const struct request *request)
{
    if (client->pinned.own) {
        request_forward(request, client);
    } else if (pinned_begin(client) == 0) {
        upstream_set_urgent(client->pinned.own);
        request_forward_as(request, client, &ended_kind);
        client_settle(client);
    }
}

/* Whether a user may do what the guard does for it is asked over its own connection, where a
 * debugger answers anything. */
static void alter(struct client *client, const struct request *request)
{
    if (command_ends_script(request->command, request->arguments, request->count)) {
        end_script(client, request);
    } else if (client->pinned.states & PINNED_USER && !strcmp(request->command->name, "SCRIPT")) {
        resp_write_error(client_reply(client),
                         "NESTGUARD unsupported: SCRIPT DEBUG is for the user 'default' alone");
    } else if (pinned_begin(client) == 0) {
        client->pinned.states |= PINNED_ALTERED;
        request_forward(request, client);
    }
}

/* As Redis does, without a word. */
static void hang_up(struct client *client, const struct request *request)
{
    (void)request;
    client_close(client);
}

void stateful_dispatch(struct client *client, const struct request *request)
{
    static void (*const acts[])(struct client *, const struct request *) = {
        [EFFECT_NONE] = forward_in_own,  [EFFECT_MULTI] = multi_begin,
        [EFFECT_EXEC] = multi_end,       [EFFECT_WATCH] = watching_begin,
        [EFFECT_UNWATCH] = watching_end, [EFFECT_BLOCK] = block,
        [EFFECT_SUBSCRIBE] = subscribe,  [EFFECT_UNSUBSCRIBE] = unsubscribe,
        [EFFECT_MONITOR] = monitor,      [EFFECT_ALTER] = alter,
        [EFFECT_RELAY] = relaying_begin, [EFFECT_HANG_UP] = hang_up};
    acts[request->command->effect](client, request);
}

/* ---- any command, in a state ---- */

/* Redis would track a key only if the lookup reached it; and it would not tell when the row of an
 * absent key appears. */
bool stateful_refuse_tracked(struct client *client, const struct request *request)
{
    bool asks_filter =
        request->command->kind == COMMAND_MEMBER && membership_is_meant(client, request);
    if (!asks_filter && !lookup_is_guarded(client, request))
        return false;
    resp_write_error(client_reply(client), "%s", tracked_refusal);
    return true;
}

/* Redis runs QUIT and RESET at once, whatever the state is. */
static bool ends_all(const struct request *request)
{
    const char *name = request->command->name;
    return request->command->kind == COMMAND_LOCAL &&
           (!strcmp(name, "QUIT") || (!strcmp(name, "RESET") && request->count == 1));
}

/* Neither local answers nor verdicts, nor states: in RESP2 a subscriber may not ask for more than
 * subscriptions, and a monitor not for keys; another database has other keys. */
static bool bypasses(const struct client *client, const struct request *request, bool stateful)
{
    unsigned states = client->pinned.states;
    enum command_effect effect = stateful ? request->command->effect : EFFECT_NONE;
    if (states & PINNED_SUBSCRIBED && !client->replies.resp3)
        return effect < EFFECT_SUBSCRIBE || effect > EFFECT_UNSUBSCRIBE;
    if (stateful || request->command->kind == COMMAND_LOCAL)
        return false;
    return states & (PINNED_MONITOR | PINNED_OTHER_DB);
}

static bool logs_in(const struct request *request)
{
    const char *name = request->command->name;
    return strcmp(name, "AUTH") == 0 || strcmp(name, "HELLO") == 0;
}

bool stateful_pinned(struct client *client, const struct request *request)
{
    unsigned states = client->pinned.states;
    bool stateful = command_is_stateful(request->command, request->arguments, request->count);
    if (ends_all(request))
        return false;
    if (states & PINNED_MULTI)
        multi_count(client, request, stateful);
    if (states & PINNED_MULTI && (!stateful || request->command->effect >= EFFECT_SUBSCRIBE)) {
        multi_queue(client, request);
        return true;
    }
    if (bypasses(client, request, stateful)) {
        if (logs_in(request)) /* only ever by local.c, even where the cache would refuse it */
            bound_refuse(client, request);
        else if (vanishing_has_all(request))
            clearing_dispatch(client, request);
        else
            request_forward(request, client);
        return true;
    }
    return states & PINNED_TRACKING && stateful_refuse_tracked(client, request);
}
