/* All here runs on the worker's own thread, but for worker_create() and worker_destroy().
 *
 * The end, by MESSAGE_DRAIN: no new clients; those that are there leave when their replies are
 * out, or are closed after drain_timeout; the keeper returns what it was asked; then connections,
 * timer and mailbox close, and the loop ends because nothing is left in it.
 */
#include "worker/worker.h"

#include "base/clock.h"
#include "base/container_of.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/slice.h"
#include "resp/command.h"
#include "traffic/ledger.h"
#include "worker/client/account.h"
#include "worker/client/client_memory.h"
#include "worker/client/listening.h"
#include "worker/client/pinned.h"
#include "worker/client/strangers.h"
#include "worker/client/tracking.h"
#include "worker/command/clients/inquiry.h"
#include "worker/command/dispatch.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/write.h"
#include "worker/connection.h"
#include "worker/reply/measuring.h"
#include "worker/request/row_loads.h"
#include "worker/upstream/pool.h"

#include <pthread.h>
#include <stdlib.h>

enum {
    TICK_MS = 100,
    /* Twice the line's time in a turn (turn.c): a row of a megabyte for each of many clients is
     * copied for each of them. */
    DELIVERY_NS = 250 * 1000
};

/* ---- the keeper's messages ---- */

/* A new generation ends entries, many at once, before the next lookup is decided upon. */
static void take_generation(struct worker *worker)
{
    struct overrides *overrides = &worker->serving.overrides;
    uint64_t before = overrides->in_force;
    overrides_use_generation(overrides, worker->serving.view->generation);
    if (overrides->in_force != before && !worker->serving.ending)
        expiry_hurry(&worker->expiry);
}

/* The replaced view goes back to the keeper, who counts. */
static void take_view(struct worker *worker, struct view_message *message)
{
    struct view *replaced = worker->serving.view;
    worker->serving.view = message->view;
    message->view = replaced;
    serving_update_limits(&worker->serving);
    if (!worker->serving.ending)
        move_resize(&worker->move);
    take_generation(worker);
    mailbox_return(&message->message);
}

static void take_override(struct worker *worker, struct override_message *message)
{
    overrides_set(&worker->serving.overrides, message->key, message->entry);
    mailbox_return(&message->message);
}

/* The slot is there whatever became of the client: this is what it waited for. */
static void take_loaded(struct worker *worker, struct load_request *request)
{
    worker->serving.asked--;
    row_loaded(request->lookup, request->outcome, request->value);
    blob_release(request->value);
    free(request);
}

static void take_written(struct worker *worker, struct write_request *request)
{
    worker->serving.asked--;
    write_returned(&worker->serving, request);
    free(request);
}

static void take_clearing(struct worker *worker, struct clearing_request *request)
{
    worker->serving.asked--;
    clearing_returned(request);
}

/* The keeper asks again only when it has its message back: it gets all that was gathered until all
 * accounts were settled. */
static void take_ledger(struct worker *worker, struct ledger_message *message)
{
    worker->ledger = message;
    tour_begin(&worker->settling);
}

static void settle_account(struct tour *tour, struct client *client)
{
    (void)tour;
    account_settle(client);
}

/* What was gathered goes, and an empty one comes. */
static void give_ledger(struct tour *tour)
{
    struct worker *worker = container_of(tour, struct worker, settling);
    struct ledger_message *message = worker->ledger;
    struct ledger *full = worker->serving.ledger;
    worker->ledger = NULL;
    worker->serving.ledger = message->ledger;
    message->ledger = full;
    mailbox_return(&message->message);
}

static void take_replicas(struct worker *worker, struct replicas_message *message)
{
    struct serving *serving = &worker->serving;
    if (!serving->ending)
        message->count = pool_report_replicas(serving->pool, message->words, message->room);
    mailbox_return(&message->message);
}

/* One of the others asks, or ours has been round. */
static void take_roll_call(struct worker *worker, struct roll_call *call)
{
    if (call->state == ROLL_CALL_ROUND) {
        inquiry_visit(call, &worker->clients);
    } else {
        worker->serving.asked--;
        inquiry_returned(call);
    }
}

/* ---- ending ---- */

static void close_all(struct worker *worker)
{
    worker->serving.ending = true;
    move_close(&worker->move);
    turn_empty_line(&worker->serving.turn); /* others' inquiries go on */
    /* What was in flight hears that it failed, while there is a turn for that. */
    turn_run(&worker->serving.turn, TURN_WRITE);
    turn_empty_line(&worker->serving.turn); /* and so commands in pieces go on, to their end */
    turn_close(&worker->serving.turn);
    uv_close((uv_handle_t *)&worker->tick, NULL);
    expiry_close(&worker->expiry);
    mailbox_close(&worker->serving.mailbox);
}

/* Clients first: they may still be owed replies. Then what they sent has its reply, or the cache
 * has had its time: the keeper is told of a write whose client has not waited, too. What writes
 * have come to may be told piece by piece; and whatever the keeper has of ours must come back. */
static void go_on_ending(struct worker *worker)
{
    if (!worker->drain || uv_is_closing((uv_handle_t *)&worker->tick))
        return;
    if (clock_ms() - worker->drain_since > worker->serving.view->config->drain_timeout_ms)
        for (struct client *client = worker->clients.first; client; client = client->following)
            client_close(client);
    if (!worker->clients.first && move_is_idle(&worker->move) &&
        !turn_has_line(&worker->serving.turn) && !worker->serving.asked)
        close_all(worker);
}

/* The predecessor has listened on the same sockets: there is nothing left that could fail. */
static void take_accept(struct worker *worker, struct message *message)
{
    int status = worker->drain ? 0 : listeners_accept(&worker->listeners);
    if (status < 0)
        log_error("worker %u: listening: %s", worker->serving.index, uv_strerror(status));
    mailbox_return(message);
}

/* Others let them in; those who are here stay. */
static void take_yield(struct worker *worker, struct message *message)
{
    listeners_close(&worker->listeners);
    mailbox_return(message);
}

/* The message is kept: sent back, it says that this thread is at its end. */
static void take_drain(struct worker *worker, struct message *message)
{
    turn_empty_line(&worker->serving.turn); /* what was read before */
    worker->drain = message;
    worker->drain_since = clock_ms();
    listeners_close(&worker->listeners);
    for (struct client *client = worker->clients.first; client; client = client->following)
        client_leave(client);
}

/* Views, entries and the order to drain come from the keeper; loads and hints are our own
 * requests, answered. */
static void on_message(void *arg, struct message *message)
{
    struct worker *worker = arg;
    switch ((enum message_kind)message->kind) {
    case MESSAGE_VIEW:
        take_view(worker, (struct view_message *)message);
        break;
    case MESSAGE_OVERRIDE:
        take_override(worker, (struct override_message *)message);
        break;
    case MESSAGE_LOAD:
        take_loaded(worker, (struct load_request *)message);
        break;
    case MESSAGE_FN_CHECK:
        worker->serving.asked--;
        free(message);
        break;
    case MESSAGE_WRITE:
        take_written(worker, (struct write_request *)message);
        break;
    case MESSAGE_CLEARING:
        take_clearing(worker, (struct clearing_request *)message);
        break;
    case MESSAGE_ROLL_CALL:
        take_roll_call(worker, (struct roll_call *)message);
        break;
    case MESSAGE_ACCEPT:
        take_accept(worker, message);
        break;
    case MESSAGE_MOVE:
        move_begin(&worker->move, (struct move_order *)message);
        break;
    case MESSAGE_KEYS_MOVED:
        pool_refresh(worker->serving.pool);
        mailbox_return(message);
        break;
    case MESSAGE_YIELD:
        take_yield(worker, message);
        break;
    case MESSAGE_LEDGER:
        take_ledger(worker, (struct ledger_message *)message);
        break;
    case MESSAGE_REPLICAS:
        take_replicas(worker, (struct replicas_message *)message);
        break;
    case MESSAGE_DRAIN:
        take_drain(worker, message);
        break;
    }
}

/* Who is closed stays in the list until libuv has let go of its socket: these may close whom they
 * look at. */
static void check_client(struct tour *tour, struct client *client)
{
    connection_check_progress(client, tour->now);
    client_follow_host(client);
    pinned_check(client, tour->now);
    tracking_check(client, tour->now);
    listening_check(client, tour->now);
    client_memory_look(client);
}

/* The turn that is timed next stands for all: it is none in which these are looked at, unless they
 * nearly always are. */
static void end_check(struct tour *tour)
{
    client_memory_settle(tour->clients);
    measuring_tick(tour->clients->serving);
}

/* The tick before may still be looking at some. */
static void check_clients(struct worker *worker)
{
    if (tour_is_under_way(&worker->checking)) {
        measuring_tick(&worker->serving);
        return;
    }
    client_memory_begin(&worker->clients);
    tour_begin(&worker->checking);
}

/* What no event would bring to light: peers that have fallen silent, and entries that have ended.
 */
static void on_tick(uv_timer_t *tick)
{
    struct worker *worker = tick->data;
    uint64_t now = clock_ms();
    atomic_store_explicit(&worker->turn, now, memory_order_relaxed);
    check_clients(worker);
    strangers_check(&worker->clients, now);
    serving_tell_log(&worker->serving, now);
    move_each(&worker->move, upstream_check_progress);
    move_tick(&worker->move);
    expiry_tick(&worker->expiry);
    go_on_ending(worker);
}

/* ---- life ---- */

static void free_worker(struct worker *worker)
{
    struct serving *serving = &worker->serving;
    overrides_finish(&serving->overrides);
    reply_slot_free_store(serving);
    resp_arguments_finish(&serving->arguments);
    batch_destroy(worker->clients.batch);
    hosts_finish(&worker->clients.hosts);
    keymap_finish(&worker->clients.ids);
    ledger_destroy(serving->ledger);
    free(serving->keyspaces);
    listeners_finish(&worker->listeners);
    move_finish(&worker->move);
    free(worker);
}

/* Connections that clients have of their own find out at a tick. */
static void on_cache_moved(void *arg)
{
    move_each(&((struct worker *)arg)->move, upstream_moved);
}

/* What has been asked for was by the map that was, or over as many connections as there were. All
 * at once: what a client asks next goes by the new map, and would overtake what it has under way
 * were it not settled by then. */
static void on_keys_moved(void *arg)
{
    struct worker *worker = arg;
    for (struct client *client = worker->clients.first; client; client = client->following)
        if (client->state < CLIENT_CLOSING) {
            tracking_follow(client);
            listening_follow(client);
            client_reroute(client);
        }
}

/* The message goes back last of all: the keeper may free the worker as soon as it has it. */
static void run(void *arg)
{
    struct worker *worker = arg;
    slice_take(SLICE_WORKER);
    /* Nobody cancels threads here. So set, libc has nothing to change around each system call. */
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    move_open(&worker->move, &worker->clients, serving_config(&worker->serving), on_cache_moved,
              on_keys_moved, worker);
    uv_run(&worker->serving.loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&worker->serving.loop);
    if (status < 0)
        log_error("worker %u: closing the loop: %s", worker->serving.index, uv_strerror(status));
    mailbox_return(worker->drain);
}

static void resume_client(struct tour *tour, struct client *client)
{
    (void)tour;
    client_resume(client);
}

/* The upstream does not know who waits for it. */
static void resume_clients(struct turn_task *task)
{
    tour_repeat(&container_of(task, struct worker, serving.relief)->resuming);
}

static void weigh_clients(struct turn_task *task)
{
    struct worker *worker = container_of(task, struct worker, serving.weighing);
    size_t bytes = worker->serving.arrived;
    worker->serving.arrived = 0;
    client_memory_came(&worker->clients, bytes);
}

static void init_serving(struct worker *worker, const struct worker_options *options)
{
    struct serving *serving = &worker->serving;
    serving->index = options->index;
    serving->relief = (struct turn_task){.run = resume_clients, .phase = TURN_WRITE};
    serving->weighing = (struct turn_task){.run = weigh_clients, .phase = TURN_WRITE};
    serving->keeper = options->keeper;
    serving->watch = options->watch;
    serving->vouched = options->vouched;
    serving->view = options->view;
    serving_update_limits(serving);
    serving->keyspaces = xcalloc_aligned(CACHE_LINE, KEYSPACES_MAX * sizeof *serving->keyspaces);
    serving->ledger = ledger_create();
    serving->sampling.random = uv_hrtime() | 1; /* xorshift never leaves 0 */
    overrides_init(&serving->overrides);
    overrides_use_generation(&serving->overrides, serving->view->generation);
    uv_loop_init(&serving->loop);
    expiry_init(&worker->expiry, &serving->loop, &serving->overrides);
    mailbox_init(&serving->mailbox, &serving->loop, on_message, worker);
    mailbox_pace(&serving->mailbox, DELIVERY_NS);
    turn_init(&serving->turn, &serving->loop);
}

/* Ids tell clients apart over all workers. */
static void init_clients(struct worker *worker, const struct worker_options *options)
{
    worker->clients.serving = &worker->serving;
    worker->serving.hosts = &worker->clients.hosts;
    worker->clients.total = options->client_total;
    worker->clients.memory = options->memory;
    worker->clients.last_id = (uint64_t)options->index << 40;
    worker->clients.batch = batch_create(&worker->serving);
    worker->checking =
        (struct tour){.clients = &worker->clients, .meet = check_client, .end = end_check};
    worker->settling =
        (struct tour){.clients = &worker->clients, .meet = settle_account, .end = give_ledger};
    worker->resuming = (struct tour){.clients = &worker->clients, .meet = resume_client};
}

int worker_create(struct worker **out, const struct worker_options *options)
{
    commands_prepare();
    struct worker *worker = xcalloc_aligned(alignof(struct worker), sizeof *worker);
    init_serving(worker, options);
    init_clients(worker, options);
    uv_timer_init(&worker->serving.loop, &worker->tick);
    worker->tick.data = worker;
    uv_timer_start(&worker->tick, on_tick, TICK_MS, TICK_MS);
    atomic_init(&worker->turn, clock_ms());
    /* Each worker has a socket of its own for each address; the kernel shares clients out. */
    int status = listeners_open(&worker->listeners, &worker->clients, options->fds,
                                options->addresses, options->count);
    if (!status && !options->waits)
        status = listeners_accept(&worker->listeners);
    if (!status)
        status = uv_thread_create(&worker->thread, run, worker);
    if (!status)
        *out = worker;
    return status;
}

uint64_t worker_turn(const struct worker *worker)
{
    return atomic_load_explicit(&worker->turn, memory_order_relaxed);
}

void worker_destroy(struct worker *worker)
{
    if (!worker)
        return;
    uv_thread_join(&worker->thread);
    free_worker(worker);
}
