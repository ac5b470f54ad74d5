/* Where the parts meet: the loop, the workers and their messages, time and signals. A signal has
 * the workers drain; when the last of them has, keeper_end.c does the rest.
 */
#include "keeper/keeper_run.h"
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/log/service.h"
#include "base/memory.h"
#include "base/slice.h"
#include "postgres/pg_pool.h"
#include "redis/redis.h"

#include <errno.h>
#include <stdlib.h>

enum {
    TICK_MS = 100,
    MAX_BODY = 64 * 1024, /* bytes of a call to the control port */
    /* Then the log is read: what thousands of clients write at once comes in one delivery, and may
     * take longer than the filter may be behind (max_lag). */
    DELIVERY_NS = 1000 * 1000
};

/* ---- views ---- */

/* From here on every part decides by this view; workers are still being told. */
static void on_adopted(void *arg, const struct view *view)
{
    struct keeper *keeper = arg;
    entries_use_view(&keeper->entries, view);
    replication_use_config(&keeper->replication, view->config);
    loading_use_view(&keeper->loading, view);
    publisher_use_view(keeper->publisher, view);
    purging_use_config(&keeper->purging, view->config);
    checking_use_config(&keeper->checking, view->config);
    standings_use_config(&keeper->standings, view->config);
}

/* Entries that were to end with a generation do so when the next one's view is adopted, once it has
 * been sent: a key is not rejected between the two. */
void keeper_publish(struct keeper *keeper, struct generation *fresh)
{
    struct publishing *publishing = &keeper->publishing;
    if (keeper->draining) { /* workers that have ended take no message */
        generation_release(fresh);
        return;
    }
    if (fresh)
        fn_checks_forget(keeper->checking.fn_checks, publishing->generation);
    publishing_builds(publishing, keeper->renewal.newest, keeper->renewal.phase != RENEWAL_IDLE);
    publishing_now(publishing, fresh);
    keeper_pace_builds(keeper);
    if (fresh)
        expiry_hurry(&keeper->expiry);
}

void keeper_review(struct keeper *keeper)
{
    if (publishing_is_due(&keeper->publishing))
        keeper_publish(keeper, NULL);
    succession_go_on(&keeper->succession);
}

/* When every worker has the newest view, whatever waits for that goes on. */
static void take_view_back(struct keeper *keeper, struct view_message *message)
{
    if (!publishing_take_back(&keeper->publishing, message))
        return;
    replication_views_are_in(&keeper->replication);
    renewal_announced(&keeper->renewal);
}

/* ---- the workers' messages ---- */

/* Workers that are told to end take no message any more. */
static void pass_on(struct keeper *keeper, struct roll_call *call)
{
    const struct outlet *outlet = &keeper->outlet;
    bool done = call->visited == outlet->count;
    if (!done && !keeper->draining) {
        mailbox_post(outlet->to[call->visited++], &call->message);
        return;
    }
    call->state = done ? ROLL_CALL_DONE : ROLL_CALL_CUT;
    mailbox_return(&call->message);
}

/* Loads and hints are the workers' requests; the other kinds are our own messages, coming back. */
static void on_message(void *arg, struct message *message)
{
    struct keeper *keeper = arg;
    switch ((enum message_kind)message->kind) {
    case MESSAGE_LOAD:
        loads_submit(keeper->loading.loads, (struct load_request *)message);
        break;
    case MESSAGE_FN_CHECK:
        keeper_take_fn_check(keeper, (struct fn_check_message *)message);
        break;
    case MESSAGE_WRITE:
        keeper_take_write(keeper, (struct write_request *)message);
        break;
    case MESSAGE_CLEARING:
        keeper_take_clearing(keeper, (struct clearing_request *)message);
        break;
    case MESSAGE_ROLL_CALL:
        pass_on(keeper, (struct roll_call *)message);
        break;
    case MESSAGE_LEDGER:
        accounting_take_back(&keeper->accounting, (struct ledger_message *)message);
        break;
    case MESSAGE_REPLICAS:
        replica_watch_take_back(&keeper->replicas, (struct replicas_message *)message);
        break;
    case MESSAGE_VIEW:
        take_view_back(keeper, (struct view_message *)message);
        break;
    case MESSAGE_OVERRIDE:
        entries_take_back((struct override_message *)message);
        break;
    case MESSAGE_MOVE:
        keeper->cache.moving--;
        free(message);
        break;
    case MESSAGE_YIELD:
        keeper->leaving.letting_in--;
        free(message);
        break;
    case MESSAGE_ACCEPT:
    case MESSAGE_KEYS_MOVED:
        free(message);
        break;
    case MESSAGE_DRAIN:
        free(message);
        if (--keeper->workers_left == 0)
            keeper_end(keeper);
        break;
    }
}

/* ---- time, signals ---- */

/* When the thread that has waited longest for its turn had the last one. */
static uint64_t oldest_turn(const struct keeper *keeper, uint64_t now)
{
    uint64_t oldest = now;
    for (unsigned i = 0; i < keeper->worker_count && !keeper->draining; i++) {
        uint64_t turn = worker_turn(keeper->workers[i]);
        oldest = turn < oldest ? turn : oldest;
    }
    return oldest;
}

/* What is due, and what has taken too long; ten times a second. The service manager is told last: a
 * keeper or a worker that hangs is not alive. */
static void on_tick(uv_timer_t *tick)
{
    struct keeper *keeper = tick->data;
    uint64_t now = clock_ms();
    keeper_watch_cache(keeper, now);
    loading_tell_log(&keeper->loading, now);
    expiry_tick(&keeper->expiry);
    loads_check_time(keeper->loading.loads, now);
    if (keeper->draining && now - keeper->drain_since > keeper_config(keeper)->drain_timeout_ms)
        loads_give_up(keeper->loading.loads); /* so that the workers' requests come back */
    keeper_watch_leaving(keeper, now);
    keeper_renew_hints(keeper, now);
    renewal_tell_log(&keeper->renewal, now);
    if (keeper->publishing.generation && !keeper->replication.serving)
        fn_checks_known(keeper->checking.fn_checks, keeper->publishing.generation, UINT64_MAX);
    purging_check_time(&keeper->purging, now);
    values_check_time(keeper->names, now);
    standings_watch(&keeper->standings);
    sources_watch(&keeper->sources, keeper->publishing.shared, keeper->publishing.sets, now);
    keeper_review(keeper);
    if (!keeper->draining)
        accounting_check_time(&keeper->accounting, keeper->workers,
                              keeper_config(keeper)->attack_threshold, now);
    if (!keeper->draining)
        replica_watch_check_time(&keeper->replicas,
                                 keeper_config(keeper)->cache_reads == CACHE_READS_REPLICA, now);
    keeper_watch_sync(keeper, now);
    publisher_tick(keeper->publisher, now);
    succession_go_on(&keeper->succession);
    service_alive(oldest_turn(keeper, now));
}

/* The message comes back to on_message() when the worker has done as it says. */
void keeper_tell_workers(struct keeper *keeper, enum message_kind kind)
{
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        struct message *message = xcalloc(1, sizeof *message);
        *message = (struct message){.kind = (int)kind, .sender = &keeper->mailbox};
        mailbox_post(&keeper->workers[i]->serving.mailbox, message);
    }
}

static void on_reload_signal(uv_signal_t *signal, int number)
{
    struct keeper *keeper = signal->data;
    (void)number;
    if (keeper_reload(keeper, NULL, NULL) == -EBUSY)
        keeper->reloading.again = true;
}

/* ---- what is left when the loop has ended ---- */

/* A worker that has ended leaves behind the view that it held. */
static void free_all(struct keeper *keeper)
{
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        view_release(keeper->workers[i]->serving.view);
        worker_destroy(keeper->workers[i]);
    }
    checking_finish(&keeper->checking);
    sources_finish(&keeper->sources);
    loading_finish(&keeper->loading);
    values_destroy(keeper->names);
    publishing_finish(&keeper->publishing);
    entries_finish(&keeper->entries);
    accounting_finish(&keeper->accounting);
    replica_watch_finish(&keeper->replicas);
    keeper_finish_cache(keeper);
    watch_destroy(keeper->watch);
    vouched_destroy(keeper->vouched);
    free(keeper->workers);
    free(keeper->outlet.to);
    free(keeper->counters);
    free(keeper);
}

/* ---- the start ---- */

static void init_signal(struct keeper *keeper, uv_signal_t *signal, uv_signal_cb obey, int number)
{
    uv_signal_init(&keeper->loop, signal);
    signal->data = keeper;
    uv_signal_start(signal, obey, number);
}

/* Without a log nothing would tell that the row has been committed since; with one, what tells of
 * it ends the hint. */
static bool is_expected(void *arg, struct key key)
{
    return entries_find(&((struct keeper *)arg)->entries, key).kind == OVERRIDE_HINT;
}

static void on_filling(void *arg, struct key key)
{
    purging_filling(&((struct keeper *)arg)->purging, key);
}

static void on_snapshot_wanted(void *arg)
{
    replication_probe(&((struct keeper *)arg)->replication);
}

/* Purging first: who fills must be able to tell it. */
static int open_loading(struct keeper *keeper)
{
    const struct config *config = publishing_first_config(&keeper->publishing);
    purging_open(&keeper->purging,
                 &(struct purging_options){.loop = &keeper->loop,
                                           .config = config,
                                           .redis = keeper->cache.here->redis,
                                           .counters = keeper->counters,
                                           .vouched = keeper->vouched,
                                           .changes = changes_sink(&keeper->changes),
                                           .replication = &keeper->replication});
    return loading_open(&keeper->loading,
                        &(struct loading_options){.loop = &keeper->loop,
                                                  .config = config,
                                                  .redis = keeper->cache.here->redis,
                                                  .watch = keeper->watch,
                                                  .counters = keeper->counters,
                                                  .filling = on_filling,
                                                  .is_expected = is_expected,
                                                  .snapshot_wanted = on_snapshot_wanted,
                                                  .arg = keeper},
                        keeper->publishing.view);
}

int keeper_open_control(struct keeper *keeper)
{
    const struct keeper_options *options = keeper->options;
    const char *error = NULL;
    if (options->control_fd < 0)
        return 0;
    struct http_options http = {.fd = options->control_fd,
                                .token = keeper_config(keeper)->control_token,
                                .routes = options->routes,
                                .arg = keeper,
                                .max_body = MAX_BODY,
                                .on_call = options->on_call};
    int status = http_server_create(&keeper->http, &keeper->loop, &http, &error);
    if (status)
        log_error("control port: %s", error);
    return status;
}

/* With the sockets that are its own: each worker has one for each address. */
static int start_worker(struct keeper *keeper, unsigned index)
{
    const struct config *config = keeper_config(keeper);
    const struct keeper_options *given = keeper->options;
    int *fds = xcalloc(given->socket_count, sizeof *fds);
    struct address *addresses = xcalloc(given->socket_count, sizeof *addresses);
    size_t count = 0;
    for (size_t i = 0; i < given->socket_count; i++)
        if (given->sockets[i].worker == index) {
            addresses[count] = config->listen[given->sockets[i].address];
            fds[count++] = given->sockets[i].fd;
        }
    struct worker_options options = {.index = index,
                                     .keeper = &keeper->mailbox,
                                     .watch = keeper->watch,
                                     .vouched = keeper->vouched,
                                     .view = keeper->publishing.view,
                                     .fds = fds,
                                     .addresses = addresses,
                                     .count = count,
                                     .waits = succession_waits(&keeper->succession),
                                     .client_total = &keeper->client_total,
                                     .memory = &keeper->client_memory};
    int status = worker_create(&keeper->workers[index], &options);
    if (status)
        log_error("worker %u: %s", index, uv_strerror(status));
    else
        keeper->publishing.view->holders++; /* this worker, from now on */
    free(fds);
    free(addresses);
    return status;
}

/* Asked when a build begins: one that begins after a reload is built for what holds then. */
static struct shared_config *config_to_build_for(void *arg)
{
    return ((struct keeper *)arg)->publishing.shared;
}

static const struct generation *generation_in_force(void *arg)
{
    return ((struct keeper *)arg)->publishing.generation;
}

static bool guards(void *arg, size_t keyspace)
{
    return publishing_covers(&((struct keeper *)arg)->publishing, keyspace);
}

/* What is told of the keyspace is made anew when the build has ended, whatever came of it. */
static void on_lacks(void *arg, size_t keyspace, const char *why)
{
    publishing_lacks(&((struct keeper *)arg)->publishing, keyspace, why);
}

/* The view that says so goes to every worker before the build's snapshot is taken. */
static void on_build_begins(void *arg)
{
    struct keeper *keeper = arg;
    keeper_publish(keeper, NULL);
    if (publishing_is_everywhere(&keeper->publishing))
        renewal_announced(&keeper->renewal);
}

/* That none is being built, and what the build could not have, goes with a view. */
static void on_build_ended(void *arg)
{
    keeper_publish(arg, NULL);
}

static void stand(struct keeper *keeper, struct built *built)
{
    purging_learn_values(&keeper->purging, built->values);
    standings_take(&keeper->standings, built);
}

/* With a stream it is followed from here on, without one it stands as it is. */
static void on_built(void *arg, struct built *built)
{
    struct keeper *keeper = arg;
    keeper_renew_names(keeper);
    const char *why = keeper_take_server(keeper, built);
    if (why)
        renewal_settle(&keeper->renewal, why);
    else if (built->stream)
        replication_follow(&keeper->replication, built);
    else
        stand(keeper, built);
}

/* What cannot fail. */
static void init(struct keeper *keeper, struct config *config)
{
    keeper->started = clock_ms();
    keeper->counters = xcalloc(KEYSPACES_MAX, sizeof *keeper->counters);
    keeper->workers = xcalloc(config->workers, sizeof(struct worker *));
    keeper->outlet = (struct outlet){.sender = &keeper->mailbox,
                                     .to = xcalloc(config->workers, sizeof(struct mailbox *))};
    accounting_init(&keeper->accounting, &keeper->outlet, KEYSPACES_MAX);
    keeper->replicas.outlet = &keeper->outlet;
    entries_init(&keeper->entries, &keeper->outlet, &keeper->changes);
    keeper->watch = watch_create(config->max_known_absent + config->load_budget);
    touches_init(&keeper->touches, keeper->watch);
    keeper->vouched = vouched_create();
    uv_loop_init(&keeper->loop);
    expiry_init(&keeper->expiry, &keeper->loop, &keeper->entries.table);
    mailbox_init(&keeper->mailbox, &keeper->loop, on_message, keeper);
    mailbox_pace(&keeper->mailbox, DELIVERY_NS);
    uv_timer_init(&keeper->loop, &keeper->tick);
    keeper->tick.data = keeper;
    uv_timer_start(&keeper->tick, on_tick, TICK_MS, TICK_MS);
    keeper_open_leaving(keeper);
    init_signal(keeper, &keeper->on_hup, on_reload_signal, SIGHUP);
    renewal_init(&keeper->renewal, &keeper->loop,
                 &(struct renewal_options){.config = config_to_build_for,
                                           .in_force = generation_in_force,
                                           .guards = guards,
                                           .beside = &keeper->publishing.sets_bytes,
                                           .lacks = on_lacks,
                                           .announce = on_build_begins,
                                           .complete = on_built,
                                           .idle = on_build_ended,
                                           .arg = keeper});
    publishing_init(&keeper->publishing, &(struct publishing_options){.config = config,
                                                                      .outlet = &keeper->outlet,
                                                                      .adopted = on_adopted,
                                                                      .arg = keeper});
}

/* What can, in the order in which each needs the others; the workers come last. 0, or a negative
 * errno that the log has. */
static int start(struct keeper *keeper)
{
    int status = keeper_open_cache(keeper);
    if (!status)
        status = open_loading(keeper);
    if (status)
        return status;
    keeper->publisher = publisher_create(keeper->cache.here->redis);
    keeper_open_changes(keeper);
    keeper_open_sources(keeper);
    status = keeper_open_sync(keeper);
    if (!status)
        keeper_open_server(keeper);
    keeper_open_succession(keeper);
    if (!status && !succession_waits(&keeper->succession))
        status = keeper_open_control(keeper);
    for (unsigned i = 0; i < keeper_config(keeper)->workers && !status; i++) {
        status = start_worker(keeper, i);
        if (!status)
            keeper->outlet.to[keeper->outlet.count++] =
                &keeper->workers[keeper->worker_count++]->serving.mailbox;
    }
    keeper->workers_left = keeper->worker_count;
    return status;
}

int keeper_run(const struct keeper_options *options, bool *handed_over)
{
    struct keeper *keeper = xcalloc(1, sizeof *keeper);
    keeper->options = options;
    slice_take(SLICE_KEEPER);
    init(keeper, options->config);
    if (start(keeper))
        return 1; /* the process ends, and with it all that was begun */
    renewal_begin(&keeper->renewal);
    if (!succession_waits(&keeper->succession))
        service_ready();
    uv_run(&keeper->loop, UV_RUN_DEFAULT);
    int status = uv_loop_close(&keeper->loop);
    if (status < 0)
        log_error("closing the keeper's loop: %s", uv_strerror(status));
    *handed_over = keeper->handed_over;
    free_all(keeper);
    log_info("ended");
    return status < 0;
}
