/* A batch is gone through twice, so that the filters are asked for all of its keys at once:
 *
 *   TURN_READ: parse each, match and hash its key ─▶ TURN_SERVE: ask the filters, dispatch each
 *
 * So their memory is waited for once for many clients, and no system call comes between that would
 * drive the code for these steps out of the processor's cache.
 */
#include "worker/command/dispatch.h"

#include "guard/guard.h"
#include "worker/client/incomplete.h"
#include "worker/client/pinned.h"
#include "worker/client/reads.h"
#include "worker/command/empty.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/lookup.h"
#include "worker/command/keys/lookup_many.h"
#include "worker/command/keys/membership.h"
#include "worker/command/keys/telling.h"
#include "worker/command/keys/vanishing.h"
#include "worker/command/keys/write.h"
#include "worker/command/local.h"
#include "worker/command/mode.h"
#include "worker/command/noauth.h"
#include "worker/command/nodes.h"
#include "worker/command/reads_order.h"
#include "worker/command/relaying.h"
#include "worker/command/script_debug.h"
#include "worker/command/stateful.h"
#include "worker/command/unnamed.h"
#include "worker/command/upload.h"
#include "worker/command/withheld.h"
#include "worker/request/sampling.h"

#include <stdlib.h>

enum { BATCH_COMMANDS = KEY_ASKS_MAX, MANY_ARGUMENTS = 512 }; /* each asks for one key at most */

/* What one client has in a batch. */
struct part {
    struct client *client;
    char *input;
    size_t length; /* bytes of it that were parsed, and how many there are */
    size_t available;
    size_t first, count; /* of the batch's requests */
    size_t first_ask;
    bool has_empty; /* an empty command, or more, before its first */
    enum resp_status status;
    struct resp_command last; /* why it ended */
};

/* Empty again before the loop handles its next event: no view, client or input changes under it. */
struct batch {
    struct turn_task task;
    struct serving *serving;
    size_t count, parts;
    struct request requests[BATCH_COMMANDS];
    struct part part[BATCH_COMMANDS];
    uint64_t head; /* of the commands, see resp.h, that `command` is the row of */
    const struct command *command;
    struct key_asks asks;
};

/* ---- parsing ---- */

/* The command looks up its one key alone: its verdict can be prepared with the batch. */
static bool has_one_key(const struct command *command, size_t count)
{
    return command->first_key > 0 && (size_t)command->first_key < count &&
           (command->kind == COMMAND_GET || command->kind == COMMAND_READ);
}

/* Commands come one after the other that mostly have the same name. */
static const struct command *find_command(struct batch *batch, uint64_t head, struct span name)
{
    if (!head)
        return command_find(name);
    if (batch->head != head) {
        batch->head = head;
        batch->command = command_find(name);
    }
    return batch->command;
}

/* Apart from the lookups, which are so compiled without regard to it. */
__attribute__((noinline)) static bool vanishes(const struct request *request)
{
    return vanishing_has(request);
}

/* MGET and EXISTS have many keys, which they ask for by themselves. */
static void prepare(struct batch *batch, const struct view *view, struct request *request)
{
    const struct command *command = request->command;
    request->keyspace = NOT_GUARDED;
    if (!has_one_key(command, request->count)) {
        if (command->kind == COMMAND_MEMBER)
            membership_prefetch(view, request);
        return;
    }
    if (!command_arity_ok(command, request->count) ||
        (command->kind != COMMAND_GET && vanishes(request)))
        return;
    struct span key = request->arguments[command->first_key];
    request->keyspace = guard_match(view->config, key);
    if (request->keyspace != NOT_GUARDED)
        key_asks_add(&batch->asks, view, request->keyspace, key);
}

/* The command that was just read from `at`. The pointer to its arguments holds until the list
 * moves: dispatch_each() sets it again. */
static inline void add_request(struct batch *batch, const struct resp_command *command,
                               const char *at)
{
    const struct serving *serving = batch->serving;
    struct request *request = &batch->requests[batch->count++];
    request->first = command->first;
    request->arguments = serving->arguments.at + command->first;
    request->count = command->count;
    request->raw = (struct span){at, command->length};
    request->is_inline = command->is_inline;
    request->command = find_command(batch, command->head, request->arguments[0]);
    prepare(batch, serving->view, request);
}

/* A command may be the last before its client settles, or one that has to wait itself, and what
 * follows is then parsed again: an inline one, which parsing writes over, is not to be among that.
 */
static bool ends_part(const struct part *part, const char *at)
{
    return (part->count || part->client->replies.at_replicas) && *at != '*';
}

/* A client that has not authenticated yet is taken command by command: the next one's limits depend
 * on this one. */
static size_t room_for(const struct batch *batch, const struct client *client)
{
    size_t room = BATCH_COMMANDS - batch->count;
    if (!client->authenticated)
        return 1;
    if (!client->takes_much)
        return room;
    size_t window = upstream_window(client->upstream);
    return window < room ? window : room;
}

/* Parses until the input, the batch or good manners end. */
static void parse_part(struct batch *batch, struct part *part)
{
    struct resp_arguments *arguments = &batch->serving->arguments;
    struct resp_limits limits = incomplete_limits(part->client);
    size_t room = room_for(batch, part->client);
    part->status = RESP_DONE;
    while (part->count < room && part->length < part->available) {
        struct resp_command *command = &part->last;
        char *at = part->input + part->length;
        if (ends_part(part, at))
            break;
        part->status =
            resp_read_command(at, part->available - part->length, &limits, arguments, command);
        if (part->status != RESP_DONE)
            break;
        if (!command->count && part->count)
            break;
        part->length += command->length;
        if (!command->count) {
            part->has_empty = true;
            continue;
        }
        add_request(batch, command, at);
        part->count++;
        room = command->count > MANY_ARGUMENTS ? 0 : room; /* the rest may have to wait */
    }
}

/* ---- one command ---- */

static void dispatch_any(struct client *client, const struct request *request);

/* CLIENT REPLY SKIP was the last command. */
static void dispatch_unheard(struct client *client, const struct request *request)
{
    client->pinned.states &= ~(unsigned)PINNED_SKIP;
    client->replies.muted = true;
    dispatch_any(client, request);
    client->replies.muted = client->reply_off; /* it may have been CLIENT REPLY OFF */
}

/* What CLIENT CACHING said stands over any CLIENT command, and no other. */
static bool dispatch_pinned(struct client *client, const struct request *request)
{
    if (client->pinned.caching && !span_is_word(request->arguments[0], "client"))
        client->pinned.caching = false;
    if (!(client->pinned.states & PINNED_SKIP))
        return stateful_pinned(client, request);
    dispatch_unheard(client, request);
    return true;
}

/* Where it goes is said by a cluster's keys, or by what the client has begun. */
static bool dispatch_led(struct client *client, const struct request *request)
{
    return relaying_pass(client, request) || nodes_dispatch(client, request) ||
           (client->pinned.states && dispatch_pinned(client, request)) ||
           script_debug_refuses(client, request);
}

static void dispatch_to_cache(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    upload_lead(client, request);
    if (!command_arity_ok(command, request->count)) {
        request_forward(request, client); /* the cache says it best */
    } else if (vanishing_has_all(request)) {
        clearing_dispatch(client, request);
    } else if (command_makes_keys(command) || command->kind == COMMAND_DELETE ||
               vanishing_has(request)) {
        if (write_dispatch(client, request) < 0)
            resp_write_error(client_reply(client), "%s", write_refusal);
    } else if (request->keyspace != NOT_GUARDED) {
        lookup_dispatch_user(client, request);
    } else if (command->kind == COMMAND_FORWARD) {
        telling_forward(client, request);
    } else if (!lookup_many_dispatch(client, request)) {
        request_forward(request, client);
    }
}

/* As Redis: the error is the last reply, and the connection ends. */
static void reject_protocol(struct client *client, const char *error)
{
    counter_add(&client->serving->counters.protocol_errors, 1);
    resp_write_error(client_reply(client), "ERR Protocol error: %s", error);
    client_leave(client);
}

/* The order counts: nothing that would change a shared connection gets as far as being sent. */
static void dispatch_any(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    if (request_is_http(request)) {
        client_close(client);
    } else if (!client->authenticated && noauth_refuses(client, request)) {
        return;
    } else if (request_hides_its_name(request)) {
        reject_protocol(client, "zero byte in the name of a command");
    } else if (dispatch_led(client, request)) {
        return;
    } else if (command->kind == COMMAND_LOCAL) {
        local_dispatch(client, request);
    } else if (command->kind == COMMAND_MODE) {
        mode_dispatch(client, request);
    } else if (command_is_stateful(command, request->arguments, request->count)) {
        stateful_dispatch(client, request);
    } else if (!membership_dispatch(client, request)) {
        dispatch_to_cache(client, request);
    }
}

/* Apart from the lookups, which are so compiled without regard to it. */
__attribute__((noinline)) static void dispatch_other(struct client *client,
                                                     const struct request *request)
{
    client->account.others++;
    measures_call(&client->serving->measures, request->command);
    dispatch_any(client, request);
}

/* Nearly all commands are lookups of one guarded key that nothing else has a say in. */
static inline void dispatch_one(struct client *client, const struct request *request)
{
    if (request->keyspace != NOT_GUARDED && client->authenticated && !client->pinned.states)
        lookup_dispatch(client, request);
    else
        dispatch_other(client, request);
}

/* What stands behind a QUIT is not served; what waits for replies is served later. */
static bool must_stop(const struct client *client)
{
    return client_is_ending(client) || client->settling;
}

/* Returns how many bytes are done with, of so many commands; the rest will be parsed again. Before
 * a command there may be empty ones. */
static size_t leave_rest(const struct batch *batch, const struct part *part, size_t served)
{
    if (served || !part->client->measure.scanned)
        part->client->need = 0; /* else it was measured, and will be read once more */
    if (served < part->count)
        return (size_t)(batch->requests[part->first + served].raw.at - part->input);
    if (!served)
        return 0;
    const struct request *last = &batch->requests[part->first + served - 1];
    return (size_t)(last->raw.at - part->input) + last->raw.length;
}

/* What it has read from replicas is to be answered first. */
static bool waits_for_reads(struct client *client, const struct request *request)
{
    const struct serving *serving = client->serving;
    bool may_read = serving->is_led && serving_config(serving)->cache_reads == CACHE_READS_REPLICA;
    return (may_read || client->replies.at_replicas) && reads_order_holds(client, request);
}

/* Apart from the lookups of one guarded key, which are so compiled without regard to it. */
__attribute__((noinline)) static bool must_wait(struct client *client, struct request *request)
{
    if (!waits_for_reads(client, request) && !lookup_many_must_wait(client, request) &&
        !write_must_wait(client, request) && !unnamed_must_wait(client, request) &&
        !withheld_must_wait(client, request) && !nodes_must_wait(client, request) &&
        !clearing_must_wait(client, request))
        return false;
    client_settle(client);
    return true;
}

/* Behind a write, a filter that did not have the key is asked once more: the write may have found
 * the log's entry for it there, and have left no hint, after the batch had asked. */
static bool is_held(const struct serving *serving, const struct request *request, bool held,
                    bool behind_write)
{
    if (held || !behind_write)
        return held;
    struct span text = request->arguments[request->command->first_key];
    return guard_holds(serving->view, key_make(request->keyspace, text));
}

/* In order, as long as the client lets them. Returns how many were served. */
static inline size_t dispatch_each(struct batch *batch, const struct part *part)
{
    struct serving *serving = batch->serving;
    struct client *client = part->client;
    struct request *request = &batch->requests[part->first], *end = request + part->count;
    const struct key_ask *ask = &batch->asks.at[part->first_ask];
    bool behind_write = false;
    client->settling &= client->replies.first != NULL; /* led elsewhere since the batch was read */
    for (; request < end && !must_stop(client); request++) {
        request->arguments = serving->arguments.at + request->first;
        if (request->keyspace != NOT_GUARDED)
            request->held = is_held(serving, request, (ask++)->held, behind_write);
        else if (must_wait(client, request))
            break;
        else
            behind_write |= command_makes_keys(request->command);
        dispatch_one(client, request);
    }
    return (size_t)(request - &batch->requests[part->first]);
}

/* Returns how many were served. */
static size_t dispatch_counted(struct batch *batch, const struct part *part)
{
    struct serving *serving = batch->serving;
    struct client *client = part->client;
    size_t served = dispatch_each(batch, part);
    if (served)
        client->command = batch->requests[part->first + served - 1].command;
    client->account.commands += served;
    counter_add(&serving->counters.commands, served);
    if (counter_read(&serving->counters.commands) >= serving->sampling.next && served)
        sampling_take(client, &batch->requests[part->first], served);
    return served;
}

/* Else the client's input is not looked at again before `need` bytes of it are there. */
static size_t begin_large(struct client *client, const char *input, size_t length)
{
    bool waits = must_stop(client) || client->replies.at_replicas;
    size_t begun = waits ? 0 : upload_begin(client, input, length);
    if (begun) {
        client->need = 0;
        reads_note_write(client);
    }
    return begun;
}

/* An inline command behind what was read from replicas, which was not parsed yet. */
static bool has_waiting_inline(const struct part *part)
{
    return !part->count && part->status == RESP_DONE && part->length < part->available &&
           part->client->replies.at_replicas;
}

/* Returns how many bytes are done with. */
static size_t dispatch_part(struct batch *batch, const struct part *part)
{
    struct client *client = part->client;
    if (part->has_empty)
        empty_dispatch(client);
    size_t served = dispatch_counted(batch, part);
    if (client->settling)
        return leave_rest(batch, part, served);
    if (has_waiting_inline(part))
        client_settle(client);
    client->need = part->status == RESP_MORE ? part->last.need : 0;
    if (client->need > UPLOAD_BYTES)
        return part->length +
               begin_large(client, part->input + part->length, part->available - part->length);
    if (part->status == RESP_BAD && !must_stop(client)) {
        reject_protocol(client, part->last.error);
        return part->available;
    }
    return part->length;
}

/* Lookups of one client have nothing to fear from another's write in the batch, as within a part
 * (is_held): the two are under way at the same time, and either may come first. */
static void serve(struct turn_task *task)
{
    struct batch *batch = (struct batch *)task; /* its first member */
    struct serving *serving = batch->serving;
    serving->permission = permission_begin(serving->view);
    key_asks_end(&batch->asks);
    for (size_t i = 0; i < batch->parts; i++)
        client_took(batch->part[i].client, dispatch_part(batch, &batch->part[i]));
    turn_worked(&serving->turn, serving->arguments.count);
    batch->count = batch->parts = batch->asks.count = serving->arguments.count = 0;
}

/* Before the turn's end, which alone is timed by itself. */
static void serve_now(struct batch *batch)
{
    struct turn *turn = &batch->serving->turn;
    uint64_t began = turn_begin_serving(turn);
    turn_cancel(turn, &batch->task);
    serve(&batch->task);
    turn_end_serving(turn, began);
}

static void add_part(struct client *client, char *input, size_t length)
{
    struct batch *batch = client->clients->batch;
    if (batch->count == BATCH_COMMANDS || batch->parts == BATCH_COMMANDS)
        serve_now(batch);
    struct part *part = &batch->part[batch->parts++];
    part->client = client;
    part->input = input;
    part->available = length;
    part->length = part->count = 0;
    part->has_empty = false;
    part->first = batch->count;
    part->first_ask = batch->asks.count;
    parse_part(batch, part);
    turn_add(&batch->serving->turn, &batch->task);
    if (part->status == RESP_BAD)
        serve_now(batch); /* the error's text is the reader's until it reads on */
}

/* Its list takes the place of the batch's while it is served; who keeps it for longer leaves an
 * empty one. */
static void serve_long(struct batch *batch, const struct part *part, struct resp_arguments *list)
{
    struct serving *serving = batch->serving;
    serve_now(batch); /* whatever there is */
    struct resp_arguments shared = serving->arguments;
    serving->arguments = *list;
    batch->part[batch->parts++] = *part;
    add_request(batch, &part->last, part->input);
    serve_now(batch);
    resp_arguments_finish(&serving->arguments);
    serving->arguments = shared;
}

/* False: it is to be read like any other. */
static bool dispatch_long(struct client *client, char *input)
{
    struct part part = {.client = client, .input = input, .count = 1, .status = RESP_DONE};
    struct resp_arguments arguments;
    enum reading reading = incomplete_read(client, input, &arguments, &part.last);
    part.length = part.available = part.last.length;
    if (reading == READING_WHOLE)
        serve_long(client->clients->batch, &part, &arguments);
    return reading != READING_AT_ONCE;
}

void dispatch_input(struct client *client, char *input, size_t length)
{
    if (client->pinned.states & PINNED_UPLOAD)
        client_took(client, upload_go_on(client, input, length));
    else if (client->need && incomplete_stays(client, input, length))
        client_took(client, 0);
    else if (!client->need || !dispatch_long(client, input))
        add_part(client, input, length);
}

/* ---- its life ---- */

struct batch *batch_create(struct serving *serving)
{
    struct batch *batch = xcalloc(1, sizeof *batch);
    batch->task = (struct turn_task){.run = serve, .phase = TURN_SERVE};
    batch->serving = serving;
    return batch;
}

void batch_destroy(struct batch *batch)
{
    free(batch);
}
