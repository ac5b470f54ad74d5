#include "client.h"

#include "clock.h"
#include "dispatch.h"
#include "memory.h"
#include "resp.h"
#include "worker.h"

#include <stdlib.h>

enum {
    MAX_COMMANDS = 1024,       /* of one client under way; then it is not read from */
    PAUSE_BYTES = 1024 * 1024, /* replies waiting; likewise */
    READ_BYTES = 64 * 1024,
    KEEP_BYTES = 16 * 1024, /* memory that an idle client keeps */
};

struct client *client_create(struct worker *worker, bool is_unix)
{
    struct client *client = xcalloc(1, sizeof *client);
    client->worker = worker;
    client->id = worker_next_client_id(worker);
    client->upstream = worker_upstream(worker, client->id);
    client->authenticated = !worker->view->config->password;
    client->progress = clock_ms();
    stream_init(&client->stream, &worker->loop, is_unix);
    client->stream.handle.data = client;
    client->write.data = client;
    worker_add_client(worker, client);
    return client;
}

/* Everybody who still owes a slot an answer keeps it; a slot that waits for nothing goes now. */
static void abandon_slots(struct client *client)
{
    struct slot *slot = client->slots;
    client->slots = client->last_slot = NULL;
    while (slot) {
        struct slot *next = slot->next;
        slot->client = NULL;
        if (!slot->waiting)
            slot_recycle(slot);
        slot = next;
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    worker_remove_client(client->worker, client);
    buffer_finish(&client->in);
    buffer_finish(&client->out);
    buffer_finish(&client->sending);
    free(client->name);
    free(client);
}

void client_close(struct client *client)
{
    if (client->closing)
        return;
    client->closing = true;
    abandon_slots(client);
    uv_close(&client->stream.handle, on_closed);
}

size_t client_waiting(const struct client *client)
{
    return buffer_length(&client->out) + buffer_length(&client->sending) + client->held;
}

static bool wants_input(const struct client *client)
{
    return !client->closing && !client->leaving && client->commands < MAX_COMMANDS &&
           client_waiting(client) < PAUSE_BYTES;
}

/* ---- replies ---- */

/* A slot of replies that were ready at once, behind others that were not. Nothing is owed to it. */
static const struct slot_kind ready_kind = {0};

void client_enqueue(struct client *client, struct slot *slot)
{
    if (client->last_slot)
        client->last_slot->next = slot;
    else
        client->slots = slot;
    client->last_slot = slot;
    client->commands++;
}

static void dequeue(struct client *client)
{
    struct slot *slot = client->slots;
    client->slots = slot->next;
    if (!client->slots)
        client->last_slot = NULL;
    client->commands -= slot->commands;
    slot_recycle(slot);
}

/* Moves finished replies from the head of the queue to the output. */
static void advance(struct client *client)
{
    while (client->slots && !client->slots->waiting) {
        struct span reply = buffer_span(&client->slots->reply);
        if (client->slots->kind != &ready_kind)
            client->held -= reply.length;
        buffer_append(&client->out, reply.at, reply.length);
        dequeue(client);
    }
}

void client_finished(struct client *client, struct slot *slot)
{
    client->held += buffer_length(&slot->reply);
    if (client->slots == slot) {
        advance(client);
        client_mark_dirty(client);
    }
}

struct buffer *client_reply(struct client *client)
{
    client_mark_dirty(client);
    if (!client->slots)
        return &client->out;
    if (client->last_slot->kind != &ready_kind)
        return &slot_open(client, &ready_kind)->reply;
    client->last_slot->commands++;
    client->commands++;
    return &client->last_slot->reply;
}

void client_mark_dirty(struct client *client)
{
    if (client->dirty || client->closing)
        return;
    client->dirty = true;
    client->next_dirty = client->worker->dirty_clients;
    client->worker->dirty_clients = client;
}

/* ---- input ---- */

/* Parses and dispatches what is there; returns how many bytes are done with. */
static size_t consume(struct client *client, char *input, size_t length)
{
    size_t taken = 0;
    while (wants_input(client) && length - taken >= client->need && taken < length) {
        size_t batch = dispatch_batch(client, input + taken, length - taken);
        if (!batch)
            break;
        taken += batch;
    }
    return taken;
}

static void consume_kept(struct client *client)
{
    struct span input = buffer_span(&client->in);
    if (!input.length)
        return;
    buffer_take(&client->in, consume(client, client->in.bytes + client->in.start, input.length));
    buffer_trim(&client->in, KEEP_BYTES);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct client *client = handle->data;
    (void)wanted;
    if (buffer_length(&client->in) == 0) {
        *room = uv_buf_init(client->worker->scratch, sizeof client->worker->scratch);
        return;
    }
    char *at = buffer_reserve(&client->in, READ_BYTES);
    *room = (uv_buf_t){.base = at, .len = client->in.size - client->in.end};
}

static void update_reading(struct client *client);

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *room)
{
    struct client *client = stream->data;
    if (count < 0) {
        client_close(client);
        return;
    }
    if (room->base == client->worker->scratch) {
        size_t taken = consume(client, room->base, (size_t)count);
        buffer_append(&client->in, room->base + taken, (size_t)count - taken);
    } else {
        buffer_commit(&client->in, (size_t)count);
        consume_kept(client);
    }
    update_reading(client);
}

/* Reading follows from what is under way; nothing else starts or stops it. */
static void update_reading(struct client *client)
{
    bool wanted = wants_input(client);
    if (client->closing || wanted == client->reading)
        return;
    client->reading = wanted;
    if (wanted)
        uv_read_start(&client->stream.stream, on_room, on_read);
    else
        uv_read_stop(&client->stream.stream);
}

void client_start(struct client *client)
{
    stream_tune(&client->stream);
    update_reading(client);
}

void client_leave(struct client *client)
{
    client->leaving = true;
    update_reading(client);
    client_mark_dirty(client);
}

/* ---- output ---- */

static void on_written(uv_write_t *write, int status)
{
    struct client *client = write->data;
    client->writing = false;
    buffer_clear(&client->sending);
    buffer_trim(&client->sending, KEEP_BYTES);
    if (status < 0)
        client_close(client);
    else
        client_mark_dirty(client);
}

static void write_rest(struct client *client)
{
    struct buffer empty = client->sending;
    client->sending = client->out;
    client->out = empty;
    struct span rest = buffer_span(&client->sending);
    uv_buf_t piece = {.base = (char *)rest.at, .len = rest.length};
    client->writing = true;
    if (uv_write(&client->write, &client->stream.stream, &piece, 1, on_written) < 0) {
        client->writing = false;
        client_close(client);
    }
}

static void write_out(struct client *client)
{
    struct span ready = buffer_span(&client->out);
    if (client->writing || !ready.length)
        return;
    uv_buf_t piece = {.base = (char *)ready.at, .len = ready.length};
    int count = uv_try_write(&client->stream.stream, &piece, 1);
    if (count < 0 && count != UV_EAGAIN) {
        client_close(client);
        return;
    }
    if (count > 0)
        buffer_take(&client->out, (size_t)count);
    if (buffer_length(&client->out))
        write_rest(client);
    else
        buffer_trim(&client->out, KEEP_BYTES);
}

void client_flush(struct client *client)
{
    client->dirty = false;
    if (client->closing)
        return;
    write_out(client);
    if (!client->closing && client->leaving && !client->slots && !client_waiting(client))
        client_close(client);
    if (client->closing)
        return;
    if (!client->reading && wants_input(client))
        consume_kept(client);
    update_reading(client);
}

void client_drop(struct client *client)
{
    counter_add(&client->worker->counters.clients_dropped, 1);
    client_close(client);
}

void client_check_progress(struct client *client, uint64_t now)
{
    size_t queued = uv_stream_get_write_queue_size(&client->stream.stream);
    if (!queued || queued != client->queued) {
        client->queued = queued;
        client->progress = now;
    } else if (now - client->progress > client->worker->view->config->output_timeout_ms) {
        client_drop(client);
    }
}
