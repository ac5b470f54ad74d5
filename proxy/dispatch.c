/* A batch is gone through twice, so that the filters are asked for all of its keys at once:
 *
 *   parse each, match and hash its key ─▶ ask the filters ─▶ dispatch each
 */
#include "dispatch.h"

#include "guard.h"
#include "local.h"
#include "lookup.h"
#include "stateful.h"
#include "upload.h"
#include "write.h"

enum {
    BATCH_COMMANDS = KEY_PROBES_MAX, /* on the stack; each has at most one key to ask for */
    GUEST_ARGUMENTS = 10,            /* what may be sent before AUTH, as in Redis */
    GUEST_BULK = 16 * 1024,
    INLINE_BYTES = 64 * 1024
};

struct batch {
    struct request requests[BATCH_COMMANDS];
    size_t first[BATCH_COMMANDS]; /* where its arguments begin in the worker's list */
    size_t count;
    size_t length; /* bytes of input */
    enum resp_status status;
    struct resp_command last; /* why it ended */
    struct command_memo memo;
    struct key_probes probes;
};

/* ---- parsing ---- */

static struct resp_limits limits_of(const struct client *client)
{
    const struct config *config = serving_config(client->serving);
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

/* MGET and EXISTS have many keys, which they ask for by themselves. */
static void prepare(struct batch *batch, const struct view *view, struct request *request)
{
    const struct command *command = command_find_again(&batch->memo, request->arguments[0]);
    request->command = command;
    request->keyspace = NOT_GUARDED;
    if (!has_one_key(command, request->count) || !command_arity_ok(command, request->count))
        return;
    struct span key = request->arguments[command->first_key];
    request->keyspace = guard_match(view->config, key);
    if (request->keyspace != NOT_GUARDED)
        key_probes_add(&batch->probes, view, request->keyspace, key);
}

/* The command that was just read from `at`. The pointer to its arguments holds until the list
 * moves: dispatch_each() sets it again. */
static inline void add_request(struct batch *batch, const struct serving *serving, const char *at)
{
    const struct resp_command *command = &batch->last;
    struct request *request = &batch->requests[batch->count];
    request->arguments = serving->arguments.at + command->first;
    request->count = command->count;
    request->raw = (struct span){at, command->length};
    request->is_inline = command->is_inline;
    prepare(batch, serving->view, request);
    batch->first[batch->count++] = command->first;
}

/* A command may be the last before its client settles, and what follows is then parsed again: an
 * inline one, which parsing writes over, is not to be among that. */
static bool ends_batch(const struct batch *batch, const char *at)
{
    return batch->count && *at != '*';
}

/* Parses until the input, the batch or good manners end. A client that has not authenticated yet is
 * taken command by command: the next one's limits depend on this one. */
static void parse_batch(struct client *client, char *input, size_t length, struct batch *batch)
{
    struct resp_arguments *arguments = &client->serving->arguments;
    struct resp_limits limits = limits_of(client);
    size_t most = client->authenticated ? BATCH_COMMANDS : 1;
    arguments->count = 0;
    batch->count = batch->length = batch->probes.count = 0;
    batch->memo.command = NULL;
    batch->status = RESP_DONE;
    while (batch->count < most && batch->length < length) {
        struct resp_command *command = &batch->last;
        char *at = input + batch->length;
        if (ends_batch(batch, at))
            break;
        batch->status = resp_read_command(at, length - batch->length, &limits, arguments, command);
        if (batch->status != RESP_DONE)
            break;
        batch->length += command->length;
        if (command->count)
            add_request(batch, client->serving, at);
    }
}

/* ---- one command ---- */

/* A web page that makes a browser talk to this port must not get a command through: its request
 * line and headers look like inline commands. */
static bool is_http(const struct request *request)
{
    struct span name = request->arguments[0];
    return request->is_inline && ((name.length == 4 && !strncasecmp(name.at, "post", 4)) ||
                                  (name.length == 5 && !strncasecmp(name.at, "host:", 5)));
}

static void dispatch_any(struct client *client, const struct request *request);

/* CLIENT REPLY SKIP was the last command. */
static void dispatch_unheard(struct client *client, const struct request *request)
{
    client->session.states &= ~(unsigned)SESSION_SKIP;
    client->replies.muted = true;
    dispatch_any(client, request);
    client->replies.muted = false;
}

static bool dispatch_in_session(struct client *client, const struct request *request)
{
    if (!(client->session.states & SESSION_SKIP))
        return stateful_in_session(client, request);
    dispatch_unheard(client, request);
    return true;
}

/* The order counts: before AUTH only what is the guard's to answer is served, and nothing that
 * would change a shared connection gets as far as being forwarded. */
static void dispatch_any(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    if (is_http(request)) {
        client_close(client);
    } else if (!client->authenticated && command->kind != COMMAND_LOCAL) {
        resp_write_error(client_reply(client), "NOAUTH Authentication required.");
    } else if (client->session.states && dispatch_in_session(client, request)) {
        return;
    } else if (command->kind == COMMAND_LOCAL) {
        local_dispatch(client, request);
    } else if (command_is_stateful(command, request->arguments, request->count)) {
        stateful_dispatch(client, request);
    } else if (!command_arity_ok(command, request->count)) {
        request_forward(request, client); /* the cache says it best */
    } else if (command->kind == COMMAND_WRITE || command->kind == COMMAND_DELETE) {
        write_dispatch(client, request);
    } else if (request->keyspace != NOT_GUARDED) {
        lookup_dispatch(client, request);
    } else if (!lookup_dispatch_many(client, request)) {
        request_forward(request, client);
    }
}

/* Nearly all commands are lookups of one guarded key that nothing else has a say in. */
static inline void dispatch_one(struct client *client, const struct request *request)
{
    if (request->keyspace != NOT_GUARDED && client->authenticated && !client->session.states)
        lookup_dispatch(client, request);
    else
        dispatch_any(client, request);
}

/* As Redis: the error is the last reply, and the connection ends. */
static void reject_protocol(struct client *client, const char *error)
{
    counter_add(&client->serving->counters.protocol_errors, 1);
    resp_write_error(client_reply(client), "ERR Protocol error: %s", error);
    client_leave(client);
}

/* What stands behind a QUIT is not served; what waits for replies is served later. */
static bool must_stop(const struct client *client)
{
    return client->closing || client->leaving || client->settling;
}

/* Returns how many bytes are done with; the rest will be parsed again. */
static size_t leave_rest(struct client *client, const char *input, const struct request *last)
{
    client->need = 0;
    return (size_t)(last->raw.at - input) + last->raw.length;
}

/* Behind a write, a filter that did not have the key is asked once more: the write may have found
 * the log's entry for it there, and have left no hint, after the batch had asked. */
static bool is_held(const struct serving *serving, const struct request *request, bool held,
                    bool behind_write)
{
    return held || (behind_write && guard_holds(serving->view, request->keyspace,
                                                request->arguments[request->command->first_key]));
}

/* In order, as long as the client lets them. Returns how many were served. */
static size_t dispatch_each(struct client *client, struct batch *batch)
{
    struct serving *serving = client->serving;
    size_t served = 0, probe = 0;
    bool behind_write = false;
    serving->permission = permission_begin(serving->view);
    key_probes_end(&batch->probes);
    client->settling = false;
    while (served < batch->count && !must_stop(client)) {
        struct request *request = &batch->requests[served];
        request->arguments = serving->arguments.at + batch->first[served++];
        if (request->keyspace != NOT_GUARDED)
            request->held = is_held(serving, request, batch->probes.at[probe++].held, behind_write);
        behind_write |= request->command->kind == COMMAND_WRITE;
        dispatch_one(client, request);
    }
    counter_add(&serving->counters.commands, served);
    return served;
}

/* Else the client's input is not looked at again before `need` bytes of it are there. */
static size_t begin_large(struct client *client, const char *input, size_t length)
{
    size_t begun = must_stop(client) ? 0 : upload_begin(client, input, length);
    if (begun)
        client->need = 0;
    return begun;
}

size_t dispatch_batch(struct client *client, char *input, size_t length)
{
    struct batch batch;
    if (client->session.states & SESSION_RELAY)
        return session_relay(client, input, length);
    if (client->session.states & SESSION_UPLOAD)
        return upload_go_on(client, input, length);
    parse_batch(client, input, length, &batch);
    size_t served = dispatch_each(client, &batch);
    if (client->settling)
        return leave_rest(client, input, &batch.requests[served - 1]);
    client->need = batch.status == RESP_MORE ? batch.last.need : 0;
    if (client->need > UPLOAD_BYTES)
        return batch.length + begin_large(client, input + batch.length, length - batch.length);
    if (batch.status == RESP_BAD && !must_stop(client)) {
        reject_protocol(client, batch.last.error);
        return length;
    }
    return batch.length;
}
