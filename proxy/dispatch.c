#include "dispatch.h"

#include "clock.h"
#include "lookup.h"
#include "memory.h"
#include "upstream.h"
#include "worker.h"

enum {
    GUEST_ARGUMENTS = 10, /* what may be sent before AUTH, as in Redis */
    GUEST_BULK = 16 * 1024,
    INLINE_BYTES = 64 * 1024
};

/* ---- parsing ---- */

static struct resp_limits limits_of(const struct client *client)
{
    const struct config *config = client->worker->view->config;
    if (!client->authenticated)
        return (struct resp_limits){GUEST_ARGUMENTS, GUEST_BULK,
                                    GUEST_ARGUMENTS * (size_t)GUEST_BULK, GUEST_BULK};
    return (struct resp_limits){config->max_arguments, config->max_bulk, config->max_command,
                                INLINE_BYTES};
}

/* Whether the command looks up its one key alone, so that its verdict can be prepared with the
 * batch. */
static bool has_one_key(const struct command *command, size_t count)
{
    return command->first_key > 0 && (size_t)command->first_key < count &&
           (command->kind == COMMAND_GET || command->kind == COMMAND_READ);
}

static void prepare(const struct view *view, struct request *request)
{
    request->command = command_find(request->arguments[0]);
    request->keyspace = NOT_GUARDED;
    if (!command_arity_ok(request->command, request->count) ||
        !has_one_key(request->command, request->count))
        return;
    struct span key = request->arguments[request->command->first_key];
    request->keyspace = guard_match(view->config, key);
    if (request->keyspace != NOT_GUARDED)
        request->hash = guard_prepare(view, request->keyspace, key);
}

struct batch {
    struct request *requests;
    size_t count;
    size_t length; /* bytes of input */
    enum resp_status status;
    struct resp_command last; /* why it ended */
};

/* Parses until the input, the batch or good manners end. A client that has not authenticated yet is
 * taken command by command: the next one's limits depend on this one. */
static void parse_batch(struct client *client, char *input, size_t length, struct batch *batch)
{
    struct worker *worker = client->worker;
    struct resp_limits limits = limits_of(client);
    size_t most = client->authenticated ? BATCH_COMMANDS : 1;
    size_t first[BATCH_COMMANDS];
    worker->arguments.count = 0;
    *batch = (struct batch){.requests = worker->batch, .status = RESP_DONE};
    while (batch->count < most && batch->length < length) {
        struct resp_command *command = &batch->last;
        char *at = input + batch->length;
        batch->status =
            resp_read_command(at, length - batch->length, &limits, &worker->arguments, command);
        if (batch->status != RESP_DONE)
            break;
        batch->length += command->length;
        if (!command->count)
            continue;
        first[batch->count] = command->first;
        worker->batch[batch->count++] = (struct request){
            .count = command->count, .raw = {at, command->length}, .is_inline = command->is_inline};
    }
    for (size_t i = 0; i < batch->count; i++) /* now that the list no longer moves */
        worker->batch[i].arguments = worker->arguments.at + first[i];
}

/* ---- forwarding ---- */

static void forward_reply(struct slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(slot_output(slot), reply.at, reply.length);
}

static void forward_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(slot_output(slot), "%s", why);
}

static const struct slot_kind forward_kind = {.on_cache = forward_reply,
                                              .on_cache_failure = forward_failure};

void dispatch_to_cache(struct slot *slot, unsigned index, const struct request *request)
{
    struct span raw = request->raw;
    struct worker *worker = slot->worker;
    if (request->is_inline) {
        buffer_clear(&worker->command);
        resp_write_command(&worker->command, request->arguments, request->count);
        raw = buffer_span(&worker->command);
    }
    upstream_send(slot->client->upstream, slot, index, raw);
}

void dispatch_forward(struct client *client, const struct request *request)
{
    struct slot *slot = slot_open(client, &forward_kind);
    slot->waiting = 1;
    dispatch_to_cache(slot, 0, request);
    slot_answered(slot);
}

/* ---- writes: forwarded, and a hint that their keys exist ---- */

/* The reply must not leave before every worker knows the hint: it waits in the slot. */
static void write_reply(struct slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(&slot->reply, reply.at, reply.length);
}

static void write_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(&slot->reply, "%s", why);
}

static const struct slot_kind write_kind = {.on_cache = write_reply,
                                            .on_cache_failure = write_failure};

/* This worker admits the key at once, so that the client's next command already finds it admitted;
 * the keeper tells the others and says until when the entry holds. */
static void give_hint(struct slot *slot, int keyspace, struct span key)
{
    struct worker *worker = slot->worker;
    const struct config *config = worker->view->config;
    overrides_set(&worker->overrides, key,
                  (struct override){.kind = OVERRIDE_HINT,
                                    .sticky = config->sync != SYNC_REPLICATION,
                                    .until = clock_ms() + config->hint_ttl_ms,
                                    .epoch = UINT64_MAX});
    struct hint_request *hint = xmalloc(sizeof *hint + key.length);
    *hint = (struct hint_request){.message = {.kind = MESSAGE_HINT},
                                  .slot = slot,
                                  .keyspace = keyspace,
                                  .key_length = key.length};
    memcpy(hint->key, key.at, key.length);
    slot->waiting++;
    worker_ask_keeper(worker, &hint->message);
    counter_add(&worker->keyspaces[keyspace].hints, 1);
}

static void dispatch_write(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    struct worker *worker = client->worker;
    struct slot *slot = slot_open(client, &write_kind);
    slot->waiting = 1;
    size_t end = command->last_key < 0 ? request->count : (size_t)command->last_key + 1;
    for (size_t i = (size_t)command->first_key; i < end; i += (size_t)command->key_step) {
        struct span key = request->arguments[i];
        int keyspace = guard_match(worker->view->config, key);
        if (keyspace == NOT_GUARDED)
            continue;
        uint64_t hash = guard_prepare(worker->view, keyspace, key);
        if (guard_wants_hint(worker->view, &worker->overrides, keyspace, key, hash))
            give_hint(slot, keyspace, key);
    }
    dispatch_to_cache(slot, 0, request);
    slot_answered(slot);
}

/* ---- one command ---- */

static void refuse(struct client *client, const struct request *request)
{
    resp_write_error(
        client_reply(client),
        "NESTGUARD unsupported: %.*s changes the state of its connection or blocks it; "
        "send it to the cache itself",
        (int)request->arguments[0].length, request->arguments[0].at);
}

/* A web page that makes a browser talk to this port must not get a command through: its request
 * line and headers look like inline commands. */
static bool is_http(const struct request *request)
{
    struct span name = request->arguments[0];
    return request->is_inline && ((name.length == 4 && !strncasecmp(name.at, "post", 4)) ||
                                  (name.length == 5 && !strncasecmp(name.at, "host:", 5)));
}

static void dispatch_one(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    if (is_http(request)) {
        client_close(client);
    } else if (!client->authenticated && command->kind != COMMAND_LOCAL) {
        resp_write_error(client_reply(client), "NOAUTH Authentication required.");
    } else if (command->kind == COMMAND_LOCAL) {
        dispatch_local(client, request);
    } else if (command_is_stateful(command, request->arguments, request->count)) {
        refuse(client, request);
    } else if (!command_arity_ok(command, request->count)) {
        dispatch_forward(client, request); /* the cache says it best */
    } else if (command->kind == COMMAND_WRITE) {
        dispatch_write(client, request);
    } else if (!lookup_dispatch(client, request)) {
        dispatch_forward(client, request);
    }
}

static void reject_protocol(struct client *client, const char *error)
{
    counter_add(&client->worker->counters.protocol_errors, 1);
    resp_write_error(client_reply(client), "ERR Protocol error: %s", error);
    client_leave(client);
}

size_t dispatch_batch(struct client *client, char *input, size_t length)
{
    struct batch batch;
    parse_batch(client, input, length, &batch);
    for (size_t i = 0; i < batch.count; i++)
        prepare(client->worker->view, &batch.requests[i]);
    for (size_t i = 0; i < batch.count && !client->closing && !client->leaving; i++)
        dispatch_one(client, &batch.requests[i]);
    counter_add(&client->worker->counters.commands, batch.count);
    client->need = batch.status == RESP_MORE ? batch.last.need : 0;
    if (batch.status == RESP_BAD && !client->closing && !client->leaving) {
        reject_protocol(client, batch.last.error);
        return length;
    }
    return batch.length;
}
