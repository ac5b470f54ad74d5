/* A state begins and ends when its command is dispatched, where the command's success is not in
 * doubt; else with its reply, and the client settles until that has come: then nothing is
 * dispatched on an assumption.
 *
 * MULTI is the exception, since whole transactions come in one piece. Should it be refused, the
 * commands behind it run at once, though they were not looked up as they should have been: a reply
 * other than QUEUED is not believed there (queued_kind).
 */
#include "worker/command/stateful.h"

#include "worker/client/pinned.h"
#include "worker/client/queued_writes.h"
#include "worker/command/bound.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/lookup.h"
#include "worker/command/keys/membership.h"
#include "worker/command/keys/telling.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write.h"
#include "worker/command/keys/write_found.h"
#include "worker/command/relaying.h"
#include "worker/command/wait.h"
#include "worker/command/watching.h"
#include "worker/command/withheld.h"
#include "worker/upstream/upstream.h"

static void forward_in_own(struct client *client, const struct request *request)
{
    /* At once: what waits for a connection of its own leaves when that comes up. */
    if (upstream_is_doubted(client->upstream) && telling_in_doubt(client, request))
        request_forward_telling(request, client);
    else if (pinned_begin(client) == 0)
        telling_forward(client, request);
}

/* ---- transactions ---- */

/* A later MULTI may have begun since: what this one is told is no word about that. */
static void multi_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct pinned *pinned = &client_of(slot->replies)->pinned;
    if (pinned->multi == slot && reply.at[0] == '-')
        stateful_discard_late(client_of(slot->replies));
    if (pinned->multi == slot)
        pinned->multi = NULL;
    request_take_reply(slot, index, reply);
}

static const struct reply_slot_kind multi_kind = {.on_cache = multi_reply,
                                                  .on_cache_failure = request_take_failure};

static void begin_multi(struct client *client, const struct request *request)
{
    if (request->count > 1 || client->pinned.states & PINNED_MULTI) {
        request_forward(request, client); /* an error, which changes nothing */
    } else if (pinned_begin_state(client) == 0) {
        client->pinned.states |= PINNED_MULTI;
        queued_forget(client);
        client->pinned.multi = request_forward_as(request, client, &multi_kind);
    }
}

/* With a word too many, which ends the transaction all the same where Redis says so. */
static void wrong_exec_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    if (span_starts(reply, "-EXECABORT")) {
        client->pinned.states &= ~(unsigned)(PINNED_MULTI | PINNED_WATCH);
        client->pinned.watching = NULL;
        queued_forget(client);
    }
    request_take_reply(slot, index, reply);
}

static const struct reply_slot_kind wrong_exec_kind = {.on_cache = wrong_exec_reply,
                                                       .on_cache_failure = request_take_failure};

/* Without MULTI they are errors. */
static void end_multi(struct client *client, const struct request *request)
{
    if (client->pinned.states & PINNED_MULTI && request->count == 1) {
        client->pinned.states &= ~(unsigned)(PINNED_MULTI | PINNED_WATCH);
        client->pinned.watching = NULL;
        pinned_begin(client); /* it has one; but now is when that was last needed */
        if (strcmp(request->command->name, "EXEC") == 0)
            withheld_execute(client, request);
        else
            withheld_discard(client, request);
        queued_forget(client);
    } else if (client->pinned.states & PINNED_MULTI && !strcmp(request->command->name, "EXEC")) {
        request_forward_as(request, client, &wrong_exec_kind);
        client_settle(client);
    } else {
        request_forward(request, client);
    }
}

/* A lookup that may read nothing but QUEUED, or an error. */
static void queued_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    if (reply.at[0] == '-' || span_starts(reply, "+QUEUED"))
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else
        resp_write_error(reply_slot_output(slot), "NESTGUARD transaction: the cache refused MULTI");
}

static const struct reply_slot_kind queued_kind = {.on_cache = queued_reply,
                                                   .on_cache_failure = request_take_failure};

/* The number of the request says why. */
static void refused_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    static const char *const texts[] = {
        [REFUSED_STATE] = "NESTGUARD unsupported: inside MULTI nothing may change the connection",
        [REFUSED_NO_ROOM] = write_refusal,
        [REFUSED_FILTER] =
            "NESTGUARD unsupported: inside MULTI a keyspace's filter is not asked or "
            "added to; do it before",
        [REFUSED_ELSEWHERE] = "CROSSSLOT Keys in request don't hash to the same slot",
        [REFUSED_ON_ITS_WAY] = UPSTREAM_ON_ITS_WAY,
        [REFUSED_ONE_NODE] = "NESTGUARD unsupported: inside MULTI a cluster is not asked for more "
                             "than one node has; do it before",
        [REFUSED_UNTOLD] = "NESTGUARD cache error: it does not say which of this command's words "
                           "are keys"};
    (void)reply;
    resp_write_error(reply_slot_output(slot), "%s", texts[index]);
}

static const struct reply_slot_kind refused_kind = {.on_cache = refused_reply,
                                                    .on_cache_failure = request_take_failure};

static void refuse_in_multi(struct client *client, enum multi_refusal why)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &refused_kind);
    request_spoil(client, slot, why);
    reply_slot_answered(slot);
}

void stateful_refuse_in_multi(struct client *client, enum multi_refusal why)
{
    client->pinned.queued++;
    refuse_in_multi(client, why);
}

/* ---- transactions that have no node yet ---- */

enum { LATE_BYTES = 1024 * 1024 };

/* Each with its length before it. */
bool stateful_hold_late(struct client *client, const struct request *request)
{
    struct buffer *late = &client->pinned.late, bytes = {0};
    size_t room = request->raw.length + RESP_HEADER_ROOM * (request->count + 1);
    if (buffer_length(late) + room > LATE_BYTES || !buffer_try_reserve(&bytes, room) ||
        !buffer_try_reserve(late, room)) {
        buffer_finish(&bytes);
        return false;
    }
    request_write(request, &bytes);
    struct span command = buffer_span(&bytes);
    buffer_append(late, &command.length, sizeof command.length);
    buffer_append(late, command.at, command.length);
    buffer_finish(&bytes);
    client->pinned.queued++;
    return true;
}

void stateful_discard_late(struct client *client)
{
    client->pinned.states &= ~(unsigned)PINNED_MULTI;
    queued_writes_forget(client);
    buffer_finish(&client->pinned.late);
}

/* Their replies have been given. */
static struct reply_slot *send_answered(struct client *client, struct span bytes,
                                        const struct reply_slot_kind *kind)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, kind);
    slot->muted = true;
    upstream_send(client->upstream, slot, 0, bytes);
    reply_slot_answered(slot);
    return slot;
}

void stateful_say_late(struct client *client)
{
    struct span left = buffer_span(&client->pinned.late), command;
    client->pinned.multi =
        send_answered(client, (struct span){"*1\r\n$5\r\nMULTI\r\n", 15}, &multi_kind);
    while (left.length) {
        memcpy(&command.length, left.at, sizeof command.length);
        command.at = left.at + sizeof command.length;
        send_answered(client, command, &queued_kind);
        left.at = command.at + command.length;
        left.length -= sizeof command.length + command.length;
    }
}

bool stateful_begin_late(struct client *client)
{
    if (pinned_begin(client) == 0) {
        stateful_say_late(client);
        return true;
    }
    client_leave(client);
    return false;
}

static bool is_client_command(const struct request *request)
{
    return strcmp(request->command->name, "CLIENT") == 0;
}

/* What would change by EXEC what is assumed of the connection: it could not be followed. And what
 * the cache would say of its own clients there, or do to them, is not meant. */
static bool alters_by_exec(const struct request *request)
{
    const struct command *command = request->command;
    if (command_is_stateful(command, request->arguments, request->count))
        return command->effect >= EFFECT_SUBSCRIBE;
    if (command->kind == COMMAND_MODE)
        return command->effect != EFFECT_NONE;
    if (command->kind != COMMAND_LOCAL)
        return false;
    return !(is_client_command(request) && request->count > 1 &&
             span_is_word(request->arguments[1], "GETNAME"));
}

static void note_all(struct client *client, const struct request *request)
{
    const struct named named = named_by(request);
    size_t source = vanishing_source(request);
    for (size_t i = 0; i < named.count; i += named.step)
        (named.deleted ? queued_writes_delete : queued_writes_remake)(client, named.keys[i]);
    if (source)
        queued_writes_delete(client, request->arguments[source]);
}

/* A write is a hint once EXEC has done it (queued_writes.h). */
static void queue_write(struct client *client, const struct request *request)
{
    if (!command_arity_ok(request->command, request->count) ||
        client->pinned.states & PINNED_OTHER_DB)
        request_forward(request, client);
    else if (write_dispatch(client, request) < 0)
        refuse_in_multi(client, REFUSED_NO_ROOM);
    else
        note_all(client, request);
}

/* What is queued as it is, for its state, may make keys as well. */
static void note_rows(struct client *client, const struct request *request, bool stateful)
{
    if (client->pinned.states & PINNED_OTHER_DB || !telling_has_row(client->serving, request))
        return;
    client->pinned.tells = true;
    client->pinned.remakes |= stateful && buffer_length(&client->pinned.deleted);
}

static void queue(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    bool writes = command->kind == COMMAND_WRITE || command->kind == COMMAND_DELETE ||
                  command->kind == COMMAND_ADMIT || vanishing_has(request);
    client->pinned.clears |= vanishing_has_all(request);
    if (alters_by_exec(request))
        refuse_in_multi(client, REFUSED_STATE);
    else if (!(client->pinned.states & PINNED_OTHER_DB) && membership_is_meant(client, request))
        refuse_in_multi(client, REFUSED_FILTER);
    else if (writes)
        queue_write(client, request);
    else if (lookup_is_guarded(client, request))
        request_forward_as(request, client, &queued_kind);
    else
        request_forward(request, client);
}

/* ---- subscriptions, and what else comes unasked ---- */

/* A confirmation comes also to who has switched replies off; an error does not. */
static void subscribe_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    slot->muted = slot->muted && reply.at[0] == '-';
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
    if (reply.at[0] == '+')
        client_of(slot->replies)->pinned.states |= PINNED_MONITOR;
    request_take_reply(slot, index, reply);
}

static const struct reply_slot_kind monitor_kind = {.on_cache = monitor_reply,
                                                    .on_cache_failure = request_take_failure};

/* Nothing more is served before it is known whether lines will come between replies. */
static void monitor(struct client *client, const struct request *request)
{
    if (pinned_begin(client) < 0)
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
        refuse_in_multi(client, REFUSED_NO_ROOM);
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
        [EFFECT_NONE] = forward_in_own,  [EFFECT_MULTI] = begin_multi,
        [EFFECT_EXEC] = end_multi,       [EFFECT_WATCH] = watching_begin,
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
    resp_write_error(client_reply(client),
                     "NESTGUARD tracking: a guarded key cannot be read by a client that tracks; "
                     "read it on a connection without CLIENT TRACKING");
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

/* Redis runs these at once, or refuses them without giving the transaction up. */
static bool is_queued(const struct request *request, bool stateful)
{
    enum command_effect effect = request->command->effect;
    return !stateful || (effect != EFFECT_MULTI && effect != EFFECT_EXEC && effect != EFFECT_WATCH);
}

bool stateful_pinned(struct client *client, const struct request *request)
{
    unsigned states = client->pinned.states;
    bool stateful = command_is_stateful(request->command, request->arguments, request->count);
    if (ends_all(request))
        return false;
    if (states & PINNED_MULTI) {
        client->pinned.queued += is_queued(request, stateful);
        note_rows(client, request, stateful);
    }
    if (states & PINNED_MULTI && (!stateful || request->command->effect >= EFFECT_SUBSCRIBE)) {
        queue(client, request);
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
