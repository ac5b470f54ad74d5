#include "worker.h"

#include "client.h"
#include "clock.h"
#include "log.h"
#include "memory.h"
#include "upstream.h"

#include <stdlib.h>

enum {
    TICK_MS = 100,
    EXPIRE_PER_TICK = 1000, /* exact entries looked at, and a part of a large table */
    BACKLOG = 1024,
    CLIENT_ID_SHARE = 1024 /* worker's index in a client's id */
};

struct listener {
    union stream stream;
    struct worker *worker;
};

/* ---- clients ---- */

uint64_t worker_next_client_id(struct worker *worker)
{
    return ++worker->next_client * CLIENT_ID_SHARE + worker->index;
}

struct upstream *worker_upstream(struct worker *worker, uint64_t client)
{
    return worker->upstreams[client / CLIENT_ID_SHARE % worker->upstream_count];
}

void worker_add_client(struct worker *worker, struct client *client)
{
    client->following = worker->clients;
    if (worker->clients)
        worker->clients->previous = client;
    worker->clients = client;
    atomic_fetch_add_explicit(worker->client_total, 1, memory_order_relaxed);
    counter_add(&worker->counters.clients, 1);
}

static void forget_dirty(struct worker *worker, const struct client *client)
{
    struct client **at = &worker->dirty_clients;
    while (*at && *at != client)
        at = &(*at)->next_dirty;
    if (*at)
        *at = client->next_dirty;
}

void worker_remove_client(struct worker *worker, struct client *client)
{
    if (client->dirty)
        forget_dirty(worker, client);
    if (client->previous)
        client->previous->following = client->following;
    else
        worker->clients = client->following;
    if (client->following)
        client->following->previous = client->previous;
    atomic_fetch_sub_explicit(worker->client_total, 1, memory_order_relaxed);
    counter_add(&worker->counters.clients, (uint64_t)-1);
}

/* The refusal is Redis' own, so that clients know what it means. */
static void refuse_client(struct client *client)
{
    static const char text[] = "-ERR max number of clients reached\r\n";
    uv_buf_t piece = {.base = (char *)text, .len = sizeof text - 1};
    uv_try_write(&client->stream.stream, &piece, 1);
    counter_add(&client->worker->counters.connections_refused, 1);
    client_close(client);
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *listener = stream->data;
    struct worker *worker = listener->worker;
    if (status < 0) {
        log_warning("worker %u: accepting a connection: %s", worker->index, uv_strerror(status));
        return;
    }
    struct client *client = client_create(worker, listener->stream.handle.type == UV_NAMED_PIPE);
    if (uv_accept(stream, &client->stream.stream) < 0) {
        client_close(client);
        return;
    }
    counter_add(&worker->counters.connections, 1);
    if (atomic_load_explicit(worker->client_total, memory_order_relaxed) >
        worker->view->config->max_clients)
        refuse_client(client);
    else
        client_start(client);
}

/* ---- the end of a loop turn ---- */

void worker_mark_upstream(struct worker *worker, struct upstream *upstream)
{
    worker->dirty_upstreams[worker->dirty_upstream_count++] = upstream;
}

/* Flushing a client can make it send more, and a failed request can make its client reply: until
 * nothing is left. */
static void flush(struct worker *worker)
{
    while (worker->dirty_clients || worker->dirty_upstream_count) {
        if (worker->dirty_upstream_count) {
            upstream_flush(worker->dirty_upstreams[--worker->dirty_upstream_count]);
            continue;
        }
        struct client *client = worker->dirty_clients;
        worker->dirty_clients = client->next_dirty;
        client_flush(client);
    }
}

static void on_turn(uv_prepare_t *turn)
{
    flush(turn->data);
}

/* ---- the keeper's messages ---- */

void worker_ask_keeper(struct worker *worker, struct message *message)
{
    message->sender = &worker->mailbox;
    worker->asked++;
    mailbox_post(worker->keeper, message);
}

static void take_view(struct worker *worker, struct view_message *message)
{
    struct view *replaced = worker->view;
    worker->view = message->view;
    message->view = replaced;
    if (worker->view->generation)
        overrides_expire(&worker->overrides, clock_ms(), worker->view->generation->number,
                         SIZE_MAX);
    mailbox_return(&message->message);
}

static void take_override(struct worker *worker, struct override_message *message)
{
    overrides_set(&worker->overrides, (struct span){message->key, message->key_length},
                  message->entry);
    mailbox_return(&message->message);
}

static void take_loaded(struct worker *worker, struct load_request *request)
{
    worker->asked--;
    slot_loaded(request->lookup, request->outcome, request->value);
    blob_release(request->value);
    free(request);
}

static void take_hinted(struct worker *worker, struct hint_request *request)
{
    worker->asked--;
    slot_answered(request->slot);
    free(request);
}

/* ---- ending ---- */

static void close_all(struct worker *worker)
{
    for (size_t i = 0; i < worker->upstream_count; i++)
        upstream_close(worker->upstreams[i]);
    flush(worker);
    uv_close((uv_handle_t *)&worker->turn, NULL);
    uv_close((uv_handle_t *)&worker->tick, NULL);
    mailbox_close(&worker->mailbox);
}

/* Clients first: they may still be owed replies. Then whatever the keeper still has of ours must
 * come back. */
static void go_on_ending(struct worker *worker)
{
    if (!worker->drain || uv_is_closing((uv_handle_t *)&worker->tick))
        return;
    if (clock_ms() - worker->drain_since > worker->view->config->drain_timeout_ms)
        for (struct client *client = worker->clients; client; client = client->following)
            client_close(client);
    if (!worker->clients && !worker->asked)
        close_all(worker);
}

static void take_drain(struct worker *worker, struct message *message)
{
    worker->drain = message;
    worker->drain_since = clock_ms();
    for (size_t i = 0; i < worker->listener_count; i++)
        uv_close(&worker->listeners[i].stream.handle, NULL);
    for (struct client *client = worker->clients; client; client = client->following)
        client_leave(client);
}

static void on_message(void *arg, struct message *message)
{
    struct worker *worker = arg;
    switch (message->kind) {
    case MESSAGE_VIEW:
        take_view(worker, (struct view_message *)message);
        break;
    case MESSAGE_OVERRIDE:
        take_override(worker, (struct override_message *)message);
        break;
    case MESSAGE_LOAD:
        take_loaded(worker, (struct load_request *)message);
        break;
    case MESSAGE_HINT:
        take_hinted(worker, (struct hint_request *)message);
        break;
    case MESSAGE_DRAIN:
        take_drain(worker, message);
        break;
    }
}

static void on_tick(uv_timer_t *tick)
{
    struct worker *worker = tick->data;
    uint64_t now = clock_ms();
    const struct generation *generation = worker->view->generation;
    for (struct client *client = worker->clients; client; client = client->following)
        if (!client->closing)
            client_check_progress(client, now);
    for (size_t i = 0; i < worker->upstream_count; i++)
        upstream_check_progress(worker->upstreams[i], now);
    overrides_expire(&worker->overrides, now, generation ? generation->number : 0,
                     EXPIRE_PER_TICK + overrides_count(&worker->overrides) / 64);
    go_on_ending(worker);
}

void worker_log_cache(struct worker *worker, const char *why)
{
    bool lost = why != NULL;
    if (lost && !worker->cache_lost)
        log_warning("worker %u: cache connection: %s", worker->index, why);
    else if (!lost && worker->cache_lost)
        log_info("worker %u: cache connection is back", worker->index);
    worker->cache_lost = lost;
}

/* ---- life ---- */

static void free_worker(struct worker *worker)
{
    overrides_finish(&worker->overrides);
    while (worker->free_slots) {
        struct slot *slot = worker->free_slots;
        worker->free_slots = slot->next;
        slot_destroy(slot);
    }
    resp_arguments_finish(&worker->arguments);
    buffer_finish(&worker->command);
    free(worker->listeners);
    free(worker->upstreams);
    free(worker->dirty_upstreams);
    free(worker->keyspaces);
    free(worker);
}

static void run(void *arg)
{
    struct worker *worker = arg;
    for (size_t i = 0; i < worker->upstream_count; i++)
        worker->upstreams[i] = upstream_create(worker);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&worker->loop);
    if (status < 0)
        log_error("worker %u: closing the loop: %s", worker->index, uv_strerror(status));
    mailbox_return(worker->drain);
}

static int listen_on(struct worker *worker, const struct worker_options *options)
{
    worker->listeners = xcalloc(options->count, sizeof *worker->listeners);
    for (size_t i = 0; i < options->count; i++) {
        struct listener *listener = &worker->listeners[worker->listener_count++];
        listener->worker = worker;
        stream_init(&listener->stream, &worker->loop, options->is_unix[i]);
        listener->stream.handle.data = listener;
        int status = stream_open(&listener->stream, options->fds[i]);
        if (!status)
            status = uv_listen(&listener->stream.stream, BACKLOG, on_connection);
        if (status)
            return status;
    }
    return 0;
}

int worker_create(struct worker **out, const struct worker_options *options)
{
    struct worker *worker = xcalloc(1, sizeof *worker);
    const struct config *config = options->view->config;
    worker->index = options->index;
    worker->keeper = options->keeper;
    worker->view = options->view;
    worker->client_total = options->client_total;
    overrides_init(&worker->overrides);
    worker->keyspaces = xcalloc(config->keyspace_count, sizeof *worker->keyspaces);
    worker->upstream_count = config->cache_connections;
    worker->upstreams = xcalloc(worker->upstream_count, sizeof(struct upstream *));
    worker->dirty_upstreams = xcalloc(worker->upstream_count, sizeof(struct upstream *));
    uv_loop_init(&worker->loop);
    mailbox_init(&worker->mailbox, &worker->loop, on_message, worker);
    uv_prepare_init(&worker->loop, &worker->turn);
    worker->turn.data = worker;
    uv_prepare_start(&worker->turn, on_turn);
    uv_timer_init(&worker->loop, &worker->tick);
    worker->tick.data = worker;
    uv_timer_start(&worker->tick, on_tick, TICK_MS, TICK_MS);
    int status = listen_on(worker, options);
    if (!status)
        status = uv_thread_create(&worker->thread, run, worker);
    if (!status)
        *out = worker;
    return status;
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    uv_thread_join(&worker->thread);
    free_worker(worker);
}
