/* A turn of the loop, for one client:
 *
 *   read ─▶ TURN_READ: dispatch_input() ─▶ TURN_SERVE: slots, replies ─▶ TURN_WRITE: flush()
 *     │                    ▲                                              │
 *     └─▶ much: the line ──┴────────────── kept input, when there is room again
 *
 * Who has sent much is served a batch at a time, in turn with the others who have (turn.h), and not
 * read from before that is done. So a client has at most one read in a turn, and whoever asks for
 * little waits for nobody's pipeline.
 *
 * What follows from the state of things is done in flush() alone: reading begins and ends there,
 * and it is there that a client which has ended lines up to be torn down. Nothing is read from it,
 * served or owed to it then, so that it does not matter how long it stands there.
 */
#include "worker/connection.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "worker/client/account.h"
#include "worker/client/client_memory.h"
#include "worker/client/incomplete.h"
#include "worker/client/pinned.h"
#include "worker/client/roster.h"
#include "worker/client/strangers.h"
#include "worker/command/clients/inquiry.h"
#include "worker/command/dispatch.h"
#include "worker/command/upload.h"
#include "worker/upstream/upstream.h"

#include <stdlib.h>

enum {
    STALL_BYTES = 1024 * 1024,        /* replies waiting; then a shared connection goes on */
    READ_BYTES = 64 * 1024,           /* room for one read, where input is kept */
    BLOCKED_BYTES = 16 * 1024 * 1024, /* of a client that is blocked: then it is not read from */
    SERVE_BYTES = 32 * 1024,          /* of input; then it is served before more is read */
    ROUND_READS = 32,                 /* likewise: each takes its time, and so does the reply */
    KEEP_BYTES = 16 * 1024,           /* memory that an idle client keeps */
    LEAVE_BYTES = 256 * 1024          /* that a leaving one may keep until its turn comes */
};

static void flush(struct turn_task *task);
static void serve_input(struct turn_task *task);

struct client *connection_create(struct clients *clients, bool is_unix)
{
    struct client *client = xcalloc(1, sizeof *client);
    struct serving *serving = clients->serving;
    client->clients = clients;
    client->serving = serving;
    client->id = ++clients->last_id;
    client->authenticated = !serving_config(serving)->password;
    client->progress = client->since = clock_ms();
    client->heard = uv_now(&serving->loop);
    client->input_task = (struct turn_task){.run = serve_input, .phase = TURN_READ};
    client->output_task = (struct turn_task){.run = flush, .phase = TURN_WRITE};
    client->replies.serving = serving;
    client->replies.task = &client->output_task;
    client->write.data = client;
    stream_init(&client->stream, &serving->loop, is_unix);
    client->stream.handle.data = client;
    roster_enter(clients, client);
    log_debug("client %llu: has come", (unsigned long long)client->id);
    return client;
}

static void mark_dirty(struct client *client)
{
    turn_add(&client->serving->turn, &client->output_task);
}

/* ---- its end ---- */

/* All but what libuv may still write: megabytes, maybe, and libuv lets go of all whose sockets were
 * closed in a turn at once. */
static void free_kept(struct client *client)
{
    buffer_finish(&client->in);
    buffer_finish(&client->replies.out);
    buffer_finish(&client->replies.unheard);
}

/* Slots that are still owed an answer were abandoned before: they do not know the client any more.
 */
static void on_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    turn_cancel(&client->serving->turn, &client->input_task);
    turn_cancel(&client->serving->turn, &client->output_task);
    roster_leave(client);
    log_debug("client %llu: has gone", (unsigned long long)client->id);
    free_kept(client); /* something may have been added after it */
    buffer_finish(&client->sending);
    introduction_end(&client->self, true);
    free(client);
}

/* Fewer than `bytes` wait: a shared connection that waited for the client is read from again. */
static void end_stall(struct client *client, size_t bytes)
{
    struct upstream *upstream = client->replies.stalls;
    if (!upstream || replies_waiting(&client->replies) >= bytes)
        return;
    client->replies.stalls = NULL;
    upstream_read(upstream, true);
}

/* Whatever belongs to it, and then the socket; once. */
static void tear_down(struct client *client)
{
    if (client->state == CLIENT_CLOSED)
        return;
    strangers_review(client);
    strangers_forget(client);
    end_stall(client, SIZE_MAX);
    upload_abort(client);
    incomplete_drop(client);
    inquiry_drop(client);
    account_settle(client);
    pinned_finish(client);
    client_set_state(client, CLIENT_CLOSED);
    stream_close(&client->stream, on_closed);
    if (client->host) /* in whose line the stream may have been until now */
        host_leave(&client->clients->hosts, client->serving, client->host);
    free_kept(client);
}

/* Its replies may have come to no good end. */
static void obey_replies(struct client *client)
{
    if (client->replies.end == REPLIES_OVERFLOWN)
        client_drop(client);
    else if (client->replies.end == REPLIES_BROKEN)
        client_close(client);
}

/* ---- input ---- */

static void serve_input(struct turn_task *task)
{
    struct client *client = container_of(task, struct client, input_task);
    struct span input = client_input(client);
    if (input.length)
        dispatch_input(client, (char *)input.at, input.length);
    else
        client_took(client, 0);
}

/* There is no input any more to be served. */
static void serve_end(struct turn_task *task)
{
    tear_down(container_of(task, struct client, input_task));
}

/* The end takes its turn, too: hundreds may go at once, and each costs the kernel some time. But
 * what a client takes counts no more once it goes: while the line is long, those who come would
 * fill the ceiling again beside it. So who takes much is first, still one after the other. */
static void line_up_to_end(struct client *client)
{
    struct turn *turn = &client->serving->turn;
    client->input_task.run = serve_end;
    if (client_memory_of(client) > LEAVE_BYTES)
        turn_line_up_first(turn, &client->input_task);
    else
        turn_line_up(turn, &client->input_task);
}

/* Room for more, and nothing that can be served: the rest of a command will never come, and nothing
 * that ends a wait. */
static void leave_at_end(struct client *client)
{
    if (!client->input_ended || !client_wants_input(client))
        return;
    if (pinned_waits(client))
        client_close(client);
    else
        client_leave(client);
}

static void update_reading(struct client *client);

/* With nothing kept, the kernel writes where every client's input is parsed: an idle client needs
 * no memory for input. */
static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct client *client = handle->data;
    (void)wanted;
    struct serving *serving = client->serving;
    if (client->input_task.queued && client_has_much(client)) {
        *room = (uv_buf_t){.base = serving->scratch}; /* not now */
        return;
    }
    if (!turn_has(&serving->turn, TURN_SERVE))
        serving->scratch_used = 0;
    if (buffer_length(&client->in) == 0) {
        *room = uv_buf_init(serving->scratch + serving->scratch_used,
                            (unsigned)(sizeof serving->scratch - serving->scratch_used));
        return;
    }
    char *at = buffer_try_reserve(&client->in, READ_BYTES);
    *room = (uv_buf_t){.base = at, .len = at ? READ_BYTES : 0}; /* ENOBUFS */
}

/* More than once in a turn when TLS has it in pieces; then, most of the time, they are one. Much of
 * it is to wait in line, which the worker's scratch buffer cannot. */
static void take_input(struct client *client, char *at, size_t count)
{
    struct serving *serving = client->serving;
    struct span *fresh = &client->fresh;
    if (at != serving->scratch + serving->scratch_used) {
        buffer_commit(&client->in, count);
        return;
    }
    if (fresh->length + count > LITTLE_INPUT ||
        (fresh->length && fresh->at + fresh->length != at)) {
        client_keep_input(client);
        buffer_append(&client->in, at, count);
        return;
    }
    serving->scratch_used += count;
    if (fresh->length)
        fresh->length += count;
    else
        *fresh = (struct span){at, count};
}

/* What came before an error. */
static void serve_rest(struct client *client)
{
    struct turn *turn = &client->serving->turn;
    turn_run(turn, TURN_SERVE);
    while (client->input_task.queued) {
        turn_run_now(turn, &client->input_task);
        turn_run(turn, TURN_SERVE);
    }
}

/* It may have closed its sending side only, to say that this was all: it gets its replies. If it
 * has gone altogether, writing them will tell. */
static void on_end(struct client *client)
{
    turn_run(&client->serving->turn, TURN_SERVE);
    client->input_ended = true;
    update_reading(client);
    mark_dirty(client); /* flush() ends it when nothing is left to serve */
}

/* UV_ENOBUFS with a place is on_room()'s "not now"; without one there was no memory. */
static void end_reading(struct client *client, ssize_t why, const uv_buf_t *room)
{
    if (why == UV_EOF) {
        on_end(client);
    } else if (why != UV_ENOBUFS || !room->base) {
        serve_rest(client);
        client_close(client);
    }
}

/* Rounds within a turn: replies leave before more is read. */
static void end_round(struct serving *serving)
{
    serving->reads = 0;
    turn_run(&serving->turn, TURN_WRITE);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct client *client = stream->data;
    if (count < 0) {
        end_reading(client, count, room);
        return;
    }
    client->heard = uv_now(&client->serving->loop);
    client->account.bytes += (size_t)count;
    if (client->state == CLIENT_LEAVING)
        return; /* it is read from for its end alone */
    take_input(client, room->base, (size_t)count);
    client_memory_came(client->clients, (size_t)count);
    client_queue_input(client);
    struct serving *serving = client->serving;
    if (++serving->reads == ROUND_READS || serving->scratch_used > SERVE_BYTES)
        end_round(serving);
}

/* What it waits for may never come. So it is read from though it may ask for no more: its end
 * stands behind all that it has sent, which counts as its memory meanwhile; what is behind each of
 * its commands is copied when that is a large one, and so bounded. An upload waits for its client.
 */
static bool must_see_end(const struct client *client)
{
    bool is_here = client->state == CLIENT_OPEN || client->state == CLIENT_LEAVING;
    return is_here && pinned_is_blocked(client) && !(client->pinned.states & PINNED_UPLOAD) &&
           buffer_length(&client->in) < BLOCKED_BYTES;
}

/* Reading follows from what is under way; nothing else starts or stops it. */
static void update_reading(struct client *client)
{
    bool wanted = (client_wants_input(client) || must_see_end(client)) && !client->input_ended;
    if (wanted == client->reading)
        return;
    client->reading = wanted;
    if (wanted)
        stream_read_start(&client->stream, on_room, on_read);
    else
        stream_read_stop(&client->stream);
}

static void open_client(struct client *client)
{
    client_set_state(client, CLIENT_OPEN);
    update_reading(client);
}

static void on_secured(void *arg, const char *error)
{
    struct client *client = arg;
    if (error) {
        counter_add(&client->serving->counters.tls_failures, 1);
        client_close(client);
    } else if (client->state == CLIENT_SECURING) {
        open_client(client);
        strangers_review(client);
    }
}

/* The certificate is that of the configuration in force: a reload takes effect here. */
void connection_start(struct client *client, bool tls)
{
    stream_tune(&client->stream);
    account_open(client);
    client->host = host_enter(&client->clients->hosts, client->serving, client->replies.origin);
    client_follow_host(client);
    if (!tls)
        open_client(client);
    else if (stream_secure_accepted(&client->stream, serving_config(client->serving)->clients_tls,
                                    &client->host->handshakes, on_secured, client) < 0)
        client_close(client);
    strangers_review(client);
}

/* ---- output ---- */

static void on_written(uv_write_t *write, int status)
{
    struct client *client = write->data;
    client->replies.sending = 0;
    buffer_clear(&client->sending);
    buffer_trim(&client->sending, KEEP_BYTES);
    if (status < 0)
        client_close(client);
    else
        mark_dirty(client);
}

/* What libuv has been given must not move until it is written: the buffers change places, and new
 * replies gather in the empty one. */
static void write_rest(struct client *client)
{
    struct buffer empty = client->sending;
    client->sending = client->replies.out;
    client->replies.out = empty;
    struct span rest = buffer_span(&client->sending);
    client->replies.sending = rest.length;
    client->account.bytes += rest.length;
    if (stream_write(&client->stream, &client->write, rest.at, rest.length, on_written) < 0) {
        buffer_clear(&client->sending);
        client_close(client);
    }
}

/* Most replies go out here, without a trip through libuv's queue. */
static void write_out(struct client *client)
{
    struct buffer *out = &client->replies.out;
    struct span ready = buffer_span(out);
    if (buffer_length(&client->sending) || !ready.length)
        return;
    int count = stream_try_write(&client->stream, ready.at, ready.length);
    if (count < 0 && count != UV_EAGAIN) {
        client_close(client);
        return;
    }
    if (count > 0) {
        client->account.bytes += (size_t)count;
        buffer_take(out, (size_t)count);
    }
    if (buffer_length(out))
        write_rest(client);
    else
        buffer_trim(out, KEEP_BYTES);
}

/* What waited may go on, or this was all. That it waited need not have stopped its reading: what
 * held it up may be over within the turn. */
static void go_on(struct client *client)
{
    bool has_some = client->fresh.length || buffer_length(&client->in);
    if (has_some && client_input(client).length)
        client_queue_input(client);
    else
        leave_at_end(client);
}

/* All is answered that was under way when too much was held; or what is left may be a command that
 * is passed on while it arrives, and cannot be answered before it has. Its reading may not have
 * stopped meanwhile: what it has sent is kept all the same. */
static void end_pace(struct client *client)
{
    struct replies *replies = &client->replies;
    bool uploads = client->pinned.states & PINNED_UPLOAD && replies_waiting(replies) < STALL_BYTES;
    if (replies->end != REPLIES_PACED || (replies->first && !uploads))
        return;
    replies->end = REPLIES_OPEN;
    if (client_input(client).length)
        client_queue_input(client);
}

/* A command of which only a part has been passed on will not come whole any more. */
static void see_off(struct client *client)
{
    upload_abort(client);
    if (!client->replies.first && !replies_waiting(&client->replies))
        client_close(client);
}

static void flush(struct turn_task *task)
{
    struct client *client = container_of(task, struct client, output_task);
    if (client->state == CLIENT_CLOSED)
        return;
    replies_drop_unheard(&client->replies);
    if (client->replies.end)
        obey_replies(client);
    if (client->state < CLIENT_CLOSING) {
        bool is_paced = pinned_is_paced(&client->pinned);
        if (is_paced)
            pinned_flush(client);
        write_out(client);
        if (is_paced)
            pinned_pace(client);
        end_stall(client, STALL_BYTES);
        if (client->replies.end)
            end_pace(client);
        go_on(client);
    }
    if (client->state == CLIENT_LEAVING)
        see_off(client);
    update_reading(client);
    if (client->state == CLIENT_CLOSING)
        line_up_to_end(client);
}

/* Nothing is under way for it, and nothing is to come unasked. */
static bool is_idle(const struct client *client)
{
    return client->state == CLIENT_OPEN && !client->replies.first &&
           !replies_waiting(&client->replies) && !pinned_waits(client);
}

static void check_idle(struct client *client)
{
    struct serving *serving = client->serving;
    uint64_t patience = serving_config(serving)->client_idle_timeout_ms;
    if (!patience || !is_idle(client) || uv_now(&serving->loop) - client->heard <= patience)
        return;
    counter_add(&serving->counters.clients_idle, 1);
    client_close(client);
}

/* The wait may have begun since it was last looked at. What a client that has ended has sent
 * besides is for nobody, as with Redis. */
static void check_blocked(struct client *client)
{
    if (!pinned_is_blocked(client) || client->pinned.states & PINNED_UPLOAD)
        return;
    update_reading(client);
    if (client->input_ended)
        client_close(client);
}

void connection_check_progress(struct client *client, uint64_t now)
{
    uint64_t patience = serving_config(client->serving)->output_timeout_ms;
    if (client->state >= CLIENT_CLOSING || client->state == CLIENT_SECURING)
        return;
    strangers_release(client, now);
    check_idle(client);
    check_blocked(client);
    size_t queued = stream_queued(&client->stream);
    if (!queued || queued != client->queued) {
        client->queued = queued;
        client->progress = now;
    } else if (now - client->progress > patience) {
        client_drop(client);
    }
}
