/* On a thread of libuv's pool, so that the keeper's loop goes on meanwhile:
 *
 *   connect ─▶ with a log to follow: publication ─▶ slot, which exports a snapshot
 *           ─▶ BEGIN, repeatable read ─▶ locks ─▶ one snapshot for all that follows
 *           ─▶ for each keyspace: estimate, else count(*) ─▶ an empty filter of that size
 *           ─▶ for each keyspace: COPY into its filter, a large table's over several connections
 *              of that snapshot (once more, into another, where the estimate was wrong)
 *           ─▶ from the beginning, if a table was rewritten between snapshot and lock,
 *              or if a second look finds more rows than were read
 *           ─▶ on_done(), on the loop: the generation is handed over
 *
 * What fails for one keyspace alone has it begun anew without that one, if it is worth it.
 */
#include "build/builder.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "base/slice.h"
#include "build/build_helpers.h"
#include "build/build_locks.h"
#include "build/build_scope.h"
#include "build/build_session.h"
#include "build/build_stream.h"
#include "build/copy/table_scan.h"
#include "build/filling.h"
#include "build/second_look.h"
#include "database/keyspace_sql.h"
#include "database/row_count.h"
#include "database/session_value.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONNECT_SECONDS = 10,
    /* A build starts over at once, then after a pause that doubles each time; so often in all. */
    STARTS_MAX = 8,
    PAUSE_MS = 20
};

/* The build's thread has it until on_done(); the loop's touches what is atomic, and `wait`. */
struct builder {
    uv_work_t work;
    struct build_scope scope;     /* the configuration, without keyspaces that cannot be had */
    uint64_t *replaced;           /* rows of each keyspace */
    struct built built;           /* what there is of it so far */
    struct pg_session *session;   /* with the snapshot; the slot's connection is in `built` */
    struct build_helpers helpers; /* with the same snapshot */
    struct pg_error error;        /* why the last start failed */
    atomic_bool stop, hurried;    /* what was wished of builder_stop() and builder_hurry() */
    atomic_bool halt; /* what the sessions look at: stopped, or a copier of this start has failed */
    _Atomic uint64_t rows, rows_total, began; /* for the keeper to look at */
    _Atomic enum build_phase phase;
    struct build_wait wait;
    const _Atomic size_t *beside;
    builder_done done;
    void *arg;
    bool failed;                   /* what the thread says to on_done() */
    size_t keyspace;               /* being built */
    char *queried;                 /* see build_locks.h */
    const struct keyspace *blamed; /* whose fault the last error may be; or NULL */
};

static const char application[] = "nestguard";

static void enter(struct builder *builder, enum build_phase phase)
{
    atomic_store_explicit(&builder->phase, phase, memory_order_relaxed);
}

static const struct keyspace *keyspace_of(const struct builder *builder)
{
    return &builder->scope.config->keyspaces[builder->keyspace];
}

/* With the shares of what the build looks at and counts; the keyspace that is being built. */
static struct filling filling_of(struct builder *builder)
{
    return (struct filling){.config = builder->scope.config,
                            .keyspace = builder->keyspace,
                            .generation = builder->built.generation,
                            .session = builder->session,
                            .helpers = &builder->helpers,
                            .keeps_copies = builder->built.stream != NULL,
                            .rows = &builder->rows,
                            .halt = &builder->halt,
                            .hurried = &builder->hurried,
                            .beside = builder->beside};
}

/* ---- the filter's size ---- */

/* An estimate is as good as ANALYZE's last word, and spares a scan; a filter that it was wrong
 * about is filled once more (filling.h). */
static int make_filter(struct builder *builder)
{
    const struct keyspace *keyspace = keyspace_of(builder);
    uint64_t rows = 0;
    int status = 0;
    /* Without a log to follow the filter needs no spare places, so that a wrong estimate would
     * always mean to copy twice. */
    if (builder->built.stream && !keyspace->where)
        status = row_count_estimate(&rows, builder->session,
                                    builder->built.tables[builder->keyspace], &builder->error);
    if (!status && !rows)
        status = row_count(&rows, builder->session, keyspace, &builder->error);
    if (status)
        return status;
    atomic_fetch_add_explicit(&builder->rows_total, rows, memory_order_relaxed);
    struct filling filling = filling_of(builder);
    return filling_begin(&filling, rows, &builder->error);
}

/* ---- where to follow the log from ---- */

static struct pg_session_options session_options(struct builder *builder)
{
    return (struct pg_session_options){.conninfo = builder->scope.config->database,
                                       .application = application,
                                       .connect_timeout = CONNECT_SECONDS,
                                       .stop = &builder->halt};
}

/* Slots are made when the transactions have ended that are under way: whom the server waits for is
 * found out by its process' number. */
static int watch_waits(struct builder *builder, const struct pg_session_options *options)
{
    char *pid = NULL;
    int status =
        session_text(&pid, builder->session, "SELECT pg_backend_pid()", NULL, &builder->error);
    if (!status)
        build_wait_watch(&builder->wait, options, pid);
    free(pid);
    return status;
}

/* A name may lead here now, and there a moment later: what was asked of another server than the
 * log is of is nothing that the log goes on from. */
static int compare_servers(struct builder *builder)
{
    const struct pg_server *asked = pg_session_server(builder->session);
    const struct pg_server *followed = pg_stream_server(builder->built.stream);
    if (pg_server_is_same(asked, followed, true))
        return 0;
    pg_error_say(&builder->error, "the connections of the build lead to different servers (%s, %s)",
                 asked->history, followed->history);
    return -ESTALE;
}

static struct build_stream_options stream_options(struct builder *builder,
                                                  const struct pg_session_options *log)
{
    return (struct build_stream_options){.whole = builder->scope.whole,
                                         .config = builder->scope.config,
                                         .blamed = &builder->blamed,
                                         .session = builder->session,
                                         .log = log};
}

static int open_stream(struct builder *builder)
{
    struct pg_session_options log = session_options(builder);
    struct build_stream_options options = stream_options(builder, &log);
    int status = watch_waits(builder, &log);
    enter(builder, BUILD_SURVEYING);
    if (!status)
        status = build_stream_survey(&builder->built, &options, &builder->error);
    enter(builder, BUILD_WAITING);
    if (!status)
        status = build_stream_open(&builder->built, &options, &builder->error);
    build_wait_end_watch(&builder->wait);
    return status ? status : compare_servers(builder);
}

/* ---- connections of one snapshot ---- */

static struct build_locks locks_of(struct builder *builder)
{
    const struct pg_stream *stream = builder->built.stream;
    return (struct build_locks){.config = builder->scope.config,
                                .exported = stream ? pg_stream_snapshot(stream) : NULL,
                                .stop = &builder->stop,
                                .wait = &builder->wait,
                                .queried = &builder->queried,
                                .blamed = &builder->blamed};
}

static int compare(struct builder *builder)
{
    struct build_locks locks = locks_of(builder);
    return build_locks_compare(&locks, builder->session, &builder->error);
}

/* Of what was over in the snapshot no stream tells, and every row of it must be known. */
static int begin_snapshot(struct builder *builder)
{
    struct build_locks locks = locks_of(builder);
    enter(builder, BUILD_LOCKING);
    int status = build_locks_begin(&locks, builder->session, &builder->error);
    if (!status)
        status = compare(builder);
    if (!status && builder->built.stream) {
        struct build_stream_options options = stream_options(builder, NULL);
        status = build_stream_compare(&builder->built, &options, &builder->error);
    }
    return status ? status
                  : build_session_read_snapshot(builder->session, &builder->built, &builder->error);
}

/* The slot's is there as long as its connection is silent; without a slot, the session's own. */
static int export_snapshot(struct builder *builder, char **snapshot)
{
    if (!builder->built.stream)
        return build_session_export(builder->session, snapshot, &builder->error);
    *snapshot = xstrdup(pg_stream_snapshot(builder->built.stream));
    return 0;
}

/* Not before a large table comes. */
static int get_helpers(struct builder *builder, unsigned wanted)
{
    struct pg_session_options options = session_options(builder);
    char *snapshot;
    if (builder->helpers.no_more || builder->helpers.count >= wanted)
        return 0;
    int status = export_snapshot(builder, &snapshot);
    if (status)
        return status;
    build_helpers_get(&builder->helpers, wanted, &options, snapshot, &builder->built.server);
    free(snapshot);
    return 0;
}

/* ---- the build ---- */

/* So that a build that nobody waits for leaves the database its processors. */
static unsigned connections_now(const struct builder *builder)
{
    bool hurried = atomic_load_explicit(&builder->hurried, memory_order_relaxed);
    return hurried ? builder->scope.config->build_connections : 1;
}

/* Over as many connections as there are, which are as many as are worth having, or fewer. */
static int copy_keyspace(struct builder *builder)
{
    struct table_scan scan;
    int status = table_scan_plan(&scan, builder->session, keyspace_of(builder), &builder->error);
    if (!status)
        status = get_helpers(builder, table_scan_shares(&scan, connections_now(builder)) - 1);
    if (status)
        return status;
    struct filling filling = filling_of(builder);
    struct build_locks locks = locks_of(builder);
    bool shared = table_scan_shares(&scan, 1 + builder->helpers.count) > 1;
    if (shared)
        build_helpers_lock(&builder->helpers, keyspace_of(builder));
    status = filling_run(&filling, &scan, &builder->error);
    return status || !shared ? status
                             : build_helpers_compare(&builder->helpers, &locks, &builder->error);
}

static int each_that(struct builder *builder, bool guarded, int (*step)(struct builder *builder))
{
    int status = 0;
    for (size_t i = 0; i < builder->scope.config->keyspace_count && !status; i++) {
        builder->keyspace = i;
        if (builder->scope.guarded[i] == guarded && keyspace_has_rows(keyspace_of(builder)))
            status = step(builder);
    }
    builder->blamed = status ? keyspace_of(builder) : NULL;
    return status;
}

/* First those that the build may be begun for alone: if they cannot be had, it ends early. */
static int each(struct builder *builder, int (*step)(struct builder *builder))
{
    int status = each_that(builder, false, step);
    return status ? status : each_that(builder, true, step);
}

/* All are counted before the first is copied: so the total is known while the rows come. */
static int copy_rows(struct builder *builder)
{
    enter(builder, BUILD_COUNTING);
    int status = each(builder, make_filter);
    enter(builder, BUILD_COPYING);
    atomic_store_explicit(&builder->began, clock_ms(), memory_order_relaxed);
    return status ? status : each(builder, copy_keyspace);
}

/* The second look needs a snapshot of its own. */
static int end_snapshot(struct builder *builder)
{
    bool follows = builder->built.stream != NULL;
    int status = build_session_end(builder->session, follows, &builder->error);
    if (status)
        return status;
    status = second_look(builder->session, builder->scope.config, builder->built.generation,
                         builder->replaced, &builder->keyspace, &builder->error);
    builder->blamed = status ? keyspace_of(builder) : NULL;
    return status;
}

/* compare() before and after: what was found out about publication and columns counts only if it
 * was the same all the time. */
static int build_once(struct builder *builder)
{
    builder->built.server = *pg_session_server(builder->session);
    builder->blamed = NULL;
    int status = build_session_read_values(builder->session, builder->scope.whole,
                                           &builder->built.values, &builder->error);
    if (!status && builder->scope.config->sync == SYNC_REPLICATION)
        status = open_stream(builder);
    if (!status)
        status = build_session_ask_lag(builder->session, &builder->built, &builder->error);
    if (!status)
        status = begin_snapshot(builder);
    if (!status)
        status = copy_rows(builder);
    if (!status)
        status = compare(builder);
    return status ? status : end_snapshot(builder);
}

/* ---- starting over ---- */

/* Nothing of what was read under this snapshot is kept. */
static void forget(struct builder *builder)
{
    struct generation *generation = builder->built.generation;
    builder->built.generation = NULL;
    built_finish(&builder->built);
    builder->built.generation = generation_create(generation->number, generation->count);
    generation_release(generation);
    atomic_store_explicit(&builder->rows, 0, memory_order_relaxed);
    atomic_store_explicit(&builder->rows_total, 0, memory_order_relaxed);
    atomic_store_explicit(&builder->began, 0, memory_order_relaxed);
    build_helpers_close(&builder->helpers);
}

/* Somebody rewrote a table, or had a lock that the build may not wait for. */
static bool may_start_over(const struct builder *builder, int status, unsigned starts)
{
    bool stopped = atomic_load_explicit(&builder->stop, memory_order_relaxed);
    bool disturbed =
        status == -ESTALE || (status == -EPROTO && strcmp(builder->error.sqlstate, "55P03") == 0);
    return disturbed && !stopped && starts < STARTS_MAX;
}

/* Whoever stops the build meanwhile says so before he has it halt. */
static void go_on(struct builder *builder)
{
    atomic_store(&builder->halt, false);
    if (atomic_load(&builder->stop))
        atomic_store(&builder->halt, true);
}

/* Over a new session: what the one before had begun may be left in the middle, and it may lead to
 * another server than the log. That it cannot be opened is no keyspace's fault. */
static int start_over(struct builder *builder, unsigned starts)
{
    struct pg_session_options options = session_options(builder);
    struct timespec pause = {.tv_nsec = starts ? (PAUSE_MS / 2L << (starts - 1)) * 1000000L : 0};
    enter(builder, BUILD_CONNECTING);
    forget(builder);
    go_on(builder);
    pg_session_close(builder->session);
    builder->session = NULL;
    builder->blamed = NULL;
    if (starts > 1)
        nanosleep(&pause, NULL);
    return pg_session_open(&builder->session, &options, &builder->error);
}

/* Whether the build, which failed so, is begun anew without a keyspace. */
static bool leave_out(struct builder *builder, int status)
{
    const struct keyspace *blamed = builder->blamed;
    return blamed && build_scope_is_ones_fault(status, builder->error.sqlstate) &&
           !atomic_load_explicit(&builder->stop, memory_order_relaxed) &&
           build_scope_leave_out(&builder->scope, blamed, builder->error.text);
}

/* Whether to go on after this failure. */
static bool goes_on(struct builder *builder, int status, unsigned *starts)
{
    unsigned long long number = builder->built.generation->number;
    if (leave_out(builder, status)) {
        log_warning("generation %llu: %s; starting over without keyspace %s", number,
                    builder->error.text, builder->blamed->name);
        return true;
    }
    if (!may_start_over(builder, status, *starts))
        return false;
    log_info("generation %llu: %s; starting over", number, builder->error.text);
    ++*starts;
    return true;
}

/* Again and again while somebody is in the way, so often at most; and without what cannot be had.
 */
static int build(struct builder *builder)
{
    struct pg_session_options options = session_options(builder);
    unsigned starts = 1;
    int status = pg_session_open(&builder->session, &options, &builder->error);
    if (!status)
        status = build_once(builder);
    while (goes_on(builder, status, &starts)) {
        status = start_over(builder, starts - 1);
        if (!status)
            status = build_once(builder);
    }
    return status;
}

/* Connections are closed before the loop hears of the end: the server frees what they hold at once.
 */
static void on_thread(uv_work_t *work)
{
    struct builder *builder = work->data;
    uint64_t began = clock_ms();
    slice_take(SLICE_STANDARD);
    builder->failed = build(builder) != 0;
    builder->built.begun = began;
    builder->built.generation->build_seconds = (double)(clock_ms() - began) / 1000;
    builder->built.generation->built_at = time(NULL);
    build_helpers_close(&builder->helpers);
    pg_session_close(builder->session);
}

static void builder_free(struct builder *builder)
{
    built_finish(&builder->built);
    build_wait_finish(&builder->wait);
    build_scope_finish(&builder->scope);
    free(builder->replaced);
    free(builder->queried);
    free(builder);
}

/* `status` is an error when the work was cancelled before it began. */
static void on_done(uv_work_t *work, int status)
{
    struct builder *builder = work->data;
    bool failed = builder->failed || status;
    builder->built.faults = build_scope_take_faults(&builder->scope);
    builder->built.keyspaces = builder->scope.whole->keyspace_count;
    builder->done(builder->arg, &builder->built, failed ? &builder->error : NULL);
    builder_free(builder);
}

struct builder *builder_start(uv_loop_t *loop, const struct builder_options *options)
{
    struct builder *builder = xcalloc(1, sizeof *builder);
    builder->work.data = builder;
    build_wait_init(&builder->wait);
    build_scope_init(&builder->scope, options->config, options->wanted, options->guarded);
    builder->hurried = options->hurried;
    builder->replaced = options->replaced;
    builder->built.generation = generation_create(options->number, options->config->keyspace_count);
    builder->beside = options->beside;
    builder->done = options->done;
    builder->arg = options->arg;
    if (uv_queue_work(loop, &builder->work, on_thread, on_done) == 0)
        return builder;
    builder_free(builder);
    return NULL;
}

void builder_stop(struct builder *builder)
{
    atomic_store(&builder->stop, true);
    atomic_store(&builder->halt, true);
}

void builder_hurry(struct builder *builder, bool hurried)
{
    atomic_store_explicit(&builder->hurried, hurried, memory_order_relaxed);
}

/* The total may be an estimate. */
struct build_progress builder_progress(struct builder *builder)
{
    uint64_t began = atomic_load_explicit(&builder->began, memory_order_relaxed);
    uint64_t rows = atomic_load_explicit(&builder->rows, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&builder->rows_total, memory_order_relaxed);
    struct build_progress progress = {
        .phase = atomic_load_explicit(&builder->phase, memory_order_relaxed),
        .rows = rows,
        .rows_total = rows > total ? rows : total,
        .seconds = began ? (double)(clock_ms() - began) / 1000 : 0};
    build_wait_read(&builder->wait, progress.waits);
    return progress;
}
