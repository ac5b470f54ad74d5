/* Whole transactions come in one piece, so nothing waits for the reply to MULTI. Should it be
 * refused, the commands behind it run at once, though they were not looked up as they should have
 * been: a reply other than QUEUED is not believed there (queued_kind).
 */
#include "worker/command/multi.h"

#include "resp/reply.h"
#include "worker/client/pinned.h"
#include "worker/client/queued_writes.h"
#include "worker/command/keys/lookup.h"
#include "worker/command/keys/membership.h"
#include "worker/command/keys/telling.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write.h"
#include "worker/command/keys/write_found.h"
#include "worker/command/withheld.h"
#include "worker/upstream/upstream.h"

/* A later MULTI may have begun since: what this one is told is no word about that. */
static void multi_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    struct client *client = client_of(slot->replies);
    bool is_latest = client->pinned.multi == slot;
    (void)index;
    if (is_latest)
        client->pinned.multi = NULL;
    if (!request_take_change(slot, reply, reply_is_ok(reply)) && is_latest)
        multi_discard_late(client);
}

static const struct reply_slot_kind multi_kind = {.on_cache = multi_reply,
                                                  .on_cache_failure = request_take_failure};

void multi_begin(struct client *client, const struct request *request)
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

void multi_end(struct client *client, const struct request *request)
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
    if (reply_is_error(reply) || reply_is_queued(reply))
        reply_slot_append(slot, reply_slot_output(slot), reply);
    else
        resp_write_error(reply_slot_output(slot), "NESTGUARD transaction: the cache refused MULTI");
}

static const struct reply_slot_kind queued_kind = {.on_cache = queued_reply,
                                                   .on_cache_failure = request_take_failure};

const char tracked_refusal[] =
    "NESTGUARD tracking: a guarded key cannot be read by a client that tracks; "
    "read it on a connection without CLIENT TRACKING";

/* The number of the request says why. */
static void refused_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    static const char *const texts[] = {
        [REFUSED_STATE] = "NESTGUARD unsupported: inside MULTI nothing may change the connection",
        [REFUSED_NO_ROOM] = write_refusal,
        [REFUSED_FILTER] =
            "NESTGUARD unsupported: inside MULTI a keyspace's filter is not asked or "
            "added to; do it before",
        [REFUSED_TRACKED] = tracked_refusal,
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

void multi_spoil(struct client *client, enum multi_refusal why)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, &refused_kind);
    request_spoil(client, slot, why);
    reply_slot_answered(slot);
}

void multi_refuse(struct client *client, enum multi_refusal why)
{
    client->pinned.queued++;
    multi_spoil(client, why);
}

/* ---- in a cluster, as long as there is no node ---- */

enum { LATE_BYTES = 1024 * 1024 };

/* Each with its length before it. */
bool multi_hold_late(struct client *client, const struct request *request)
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

void multi_discard_late(struct client *client)
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

void multi_say_late(struct client *client)
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

bool multi_begin_late(struct client *client)
{
    if (pinned_begin(client) == 0) {
        multi_say_late(client);
        return true;
    }
    client_leave(client);
    return false;
}

/* ---- what is queued ---- */

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
        multi_spoil(client, REFUSED_NO_ROOM);
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

void multi_queue(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    bool is_here = !(client->pinned.states & PINNED_OTHER_DB);
    bool writes = command->kind == COMMAND_WRITE || command->kind == COMMAND_DELETE ||
                  command->kind == COMMAND_ADMIT || vanishing_has(request);
    client->pinned.clears |= vanishing_has_all(request);
    if (alters_by_exec(request))
        multi_spoil(client, REFUSED_STATE);
    else if (is_here && membership_is_meant(client, request))
        multi_spoil(client, REFUSED_FILTER);
    else if (is_here && client->pinned.states & PINNED_TRACKING &&
             lookup_is_guarded(client, request))
        multi_spoil(client, REFUSED_TRACKED);
    else if (writes)
        queue_write(client, request);
    else if (lookup_is_guarded(client, request))
        request_forward_as(request, client, &queued_kind);
    else
        request_forward(request, client);
}

/* Redis runs these at once, or refuses them without giving the transaction up. */
static bool is_queued(const struct request *request, bool stateful)
{
    enum command_effect effect = request->command->effect;
    return !stateful || (effect != EFFECT_MULTI && effect != EFFECT_EXEC && effect != EFFECT_WATCH);
}

void multi_count(struct client *client, const struct request *request, bool stateful)
{
    client->pinned.queued += is_queued(request, stateful);
    note_rows(client, request, stateful);
}
