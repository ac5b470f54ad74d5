/* On a thread of libuv's pool, so that the keeper's loop goes on meanwhile:
 *
 *   connect ─▶ with a log to follow: publication ─▶ slot, which exports a snapshot
 *           ─▶ BEGIN, repeatable read: one snapshot for all that follows
 *           ─▶ for each keyspace: estimate, else count(*) ─▶ an empty filter of that size
 *           ─▶ for each keyspace: COPY into its filter, a large table's over several connections,
 *              which share the snapshot (once more, into another, where the estimate was wrong)
 *           ─▶ on_done(), on the loop: the generation is handed over
 *
 * Until then the loop reads only what is atomic here.
 */
#include "builder.h"

#include "build_session.h"
#include "clock.h"
#include "copier.h"
#include "keyspace_sql.h"
#include "memory.h"
#include "publication.h"
#include "row_count.h"
#include "scan.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    CONNECT_SECONDS = 10,
    /* Places for rows that come while the log is followed: a share of the rows, and some for small
       tables. */
    SPARE_SHARE = 32,
    SPARE_ROWS = 1000,
    CONNECTIONS_MAX = 16 /* as many as build_connections may be */
};

struct builder {
    uv_work_t work;
    const struct config *config;
    struct built built;
    struct pg_session *session;
    struct pg_session *helpers[CONNECTIONS_MAX - 1]; /* with the same snapshot */
    unsigned helper_count;
    bool no_more_helpers; /* the last one that was wanted could not be had */
    struct pg_error error;
    atomic_bool stop, hurried;
    _Atomic uint64_t rows, rows_total, began; /* for the keeper to look at */
    _Atomic enum build_phase phase;
    builder_done done;
    void *arg;
    bool failed;
    size_t keyspace; /* being built */
};

static const char application[] = "nestguard";

static void enter(struct builder *builder, enum build_phase phase)
{
    atomic_store_explicit(&builder->phase, phase, memory_order_relaxed);
}

const char *build_phase_text(enum build_phase phase)
{
    static const char *const texts[] = {
        [BUILD_CONNECTING] = "connecting",
        [BUILD_WAITING] = "waiting for the slot: transactions that are under way must end first",
        [BUILD_COUNTING] = "counting the rows",
        [BUILD_COPYING] = "copying"};
    return texts[phase];
}

void built_finish(struct built *built)
{
    generation_release(built->generation);
    if (built->stream)
        pg_stream_close(built->stream, NULL, NULL);
    free(built->tables);
    free(built->fingerprint);
    free(built->values);
    snapshot_finish(&built->snapshot);
    *built = (struct built){0};
}

static int execute(struct builder *builder, const char *sql, PGresult **result)
{
    return pg_session_exec(builder->session, sql, 0, NULL, result, &builder->error);
}

static size_t capacity_for(const struct builder *builder, uint64_t rows)
{
    uint64_t spare = rows / SPARE_SHARE;
    if (builder->config->sync != SYNC_REPLICATION)
        return rows;
    return rows + (spare > SPARE_ROWS ? spare : SPARE_ROWS);
}

static struct filter *filter_of(const struct builder *builder)
{
    return builder->built.generation->filters[builder->keyspace];
}

static const struct keyspace *keyspace_of(const struct builder *builder)
{
    return &builder->config->keyspaces[builder->keyspace];
}

/* ---- the filter's size ---- */

static int create_filter(struct builder *builder, uint64_t rows)
{
    const struct keyspace *keyspace = keyspace_of(builder);
    const char *why;
    struct filter_options options = {.kind = keyspace->filter,
                                     .capacity = capacity_for(builder, rows),
                                     .false_positive_rate = keyspace->false_positive_rate,
                                     .max_bytes = builder->config->max_filter_memory};
    int status =
        filter_create(&builder->built.generation->filters[builder->keyspace], &options, &why);
    if (status)
        snprintf(builder->error.text, sizeof builder->error.text,
                 "a filter for the %llu rows of keyspace %s: %s", (unsigned long long)rows,
                 keyspace->name, why);
    return status;
}

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
    return create_filter(builder, rows);
}

/* So that neither memory is wasted nor another filter needed soon. */
static bool has_right_size(const struct builder *builder, uint64_t rows)
{
    size_t capacity = filter_stats(filter_of(builder)).capacity;
    size_t wanted = capacity_for(builder, rows);
    size_t tolerance = wanted / (2 * SPARE_SHARE);
    return capacity >= wanted - tolerance && capacity <= wanted + tolerance;
}

/* ---- where to follow the log from ---- */

/* "123,456": each keyspace's table. */
static int read_tables(struct builder *builder, const char *list)
{
    size_t count = builder->config->keyspace_count;
    builder->built.tables = xcalloc(count, sizeof *builder->built.tables);
    for (size_t i = 0; i < count; i++) {
        char *end;
        builder->built.tables[i] = (uint32_t)strtoul(list, &end, 10);
        list = *end ? end + 1 : end;
        if (builder->built.tables[i])
            continue;
        snprintf(builder->error.text, sizeof builder->error.text,
                 "the table of keyspace %s is not there or not published",
                 builder->config->keyspaces[i].name);
        return -EPROTO;
    }
    return 0;
}

/* Before the slot is made: whatever changes from here on, the first probe after the build shows it.
 */
static int take_fingerprint(struct builder *builder)
{
    PGresult *result;
    char *sql = publication_probe_sql(builder->config);
    int status = execute(builder, sql, &result);
    free(sql);
    if (status)
        return status;
    builder->built.fingerprint = xstrdup(PQgetvalue(result, 0, 0));
    status = read_tables(builder, PQgetvalue(result, 0, 1));
    PQclear(result);
    return status;
}

static int open_stream(struct builder *builder)
{
    struct pg_stream_options options = {.conninfo = builder->config->database,
                                        .application = application,
                                        .connect_timeout = CONNECT_SECONDS,
                                        .stop = &builder->stop,
                                        .publication = builder->config->publication};
    int status = publication_ensure(builder->session, builder->config, &builder->error);
    if (!status)
        status = take_fingerprint(builder);
    enter(builder, BUILD_WAITING);
    if (!status)
        status = pg_stream_open(&builder->built.stream, &options, &builder->error);
    return status;
}

static struct pg_session_options session_options(struct builder *builder)
{
    return (struct pg_session_options){.conninfo = builder->config->database,
                                       .application = application,
                                       .connect_timeout = CONNECT_SECONDS,
                                       .stop = &builder->stop};
}

/* ---- connections of one snapshot ---- */

/* What was over in the slot's snapshot the stream does not tell. */
static int begin_snapshot(struct builder *builder)
{
    const struct pg_stream *stream = builder->built.stream;
    int status = build_session_begin(builder->session, stream ? pg_stream_snapshot(stream) : NULL,
                                     &builder->error);
    if (status || !stream)
        return status;
    return build_session_read_snapshot(builder->session, &builder->built.snapshot, &builder->error);
}

/* The slot's is there as long as its connection is silent; without a slot, the session's own. */
static int export_snapshot(struct builder *builder, char **snapshot)
{
    if (!builder->built.stream)
        return build_session_export(builder->session, snapshot, &builder->error);
    *snapshot = xstrdup(pg_stream_snapshot(builder->built.stream));
    return 0;
}

static int add_helper(struct builder *builder, const char *snapshot)
{
    struct pg_session_options options = session_options(builder);
    struct pg_session *session = NULL;
    struct pg_error error;
    int status = pg_session_open(&session, &options, &error);
    if (!status)
        status = build_session_begin(session, snapshot, &error);
    if (status)
        pg_session_close(session);
    else
        builder->helpers[builder->helper_count++] = session;
    return status;
}

/* Not before a large table comes. A connection that cannot be had is done without. */
static int get_helpers(struct builder *builder, unsigned wanted)
{
    char *snapshot;
    if (builder->no_more_helpers || builder->helper_count >= wanted)
        return 0;
    int status = export_snapshot(builder, &snapshot);
    if (status)
        return status;
    while (builder->helper_count < wanted && !builder->no_more_helpers)
        builder->no_more_helpers = add_helper(builder, snapshot) != 0;
    free(snapshot);
    return 0;
}

/* A helper must not wait for the table: whoever wants it for himself alone waits for our first
 * session, which waits for the helper's rows, and the helper, in the queue for the table, would
 * wait for him; the server sees no circle in that. So a helper that cannot have its lock at once is
 * done without. With it, its COPY waits for nobody. */
static void lock_for_helpers(struct builder *builder)
{
    char *table = keyspace_sql_table(keyspace_of(builder));
    char *sql = xasprintf("LOCK TABLE ONLY %s IN ACCESS SHARE MODE NOWAIT", table);
    unsigned kept = 0;
    for (unsigned i = 0; i < builder->helper_count; i++) {
        struct pg_error error;
        if (pg_session_exec(builder->helpers[i], sql, 0, NULL, NULL, &error) == 0)
            builder->helpers[kept++] = builder->helpers[i];
        else
            pg_session_close(builder->helpers[i]);
    }
    builder->no_more_helpers |= kept < builder->helper_count;
    builder->helper_count = kept;
    free(sql);
    free(table);
}

/* ---- the build ---- */

static int start_copiers(struct builder *builder, struct copy_target *target,
                         const struct scan *scan, struct copier **copiers, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct pg_session *session = i ? builder->helpers[i - 1] : builder->session;
        copiers[i] = copier_start(target, session, scan_sql(scan, target->keyspace, i, count));
        if (copiers[i])
            continue;
        atomic_store_explicit(&builder->stop, true, memory_order_relaxed);
        snprintf(builder->error.text, sizeof builder->error.text, "no thread to read rows on");
        return -EAGAIN;
    }
    return 0;
}

/* Says of the first failure, which had the others stopped. */
static int join_copiers(struct builder *builder, struct copier **copiers, unsigned count,
                        int status)
{
    for (unsigned i = 0; i < count && copiers[i]; i++) {
        struct pg_error error;
        int ended = copier_join(copiers[i], &error);
        if (!ended || (status && status != -ECANCELED))
            continue;
        status = ended;
        builder->error = error;
    }
    return status;
}

static int copy_once(struct builder *builder, const struct scan *scan, struct copy_target *target)
{
    struct copier *copiers[CONNECTIONS_MAX] = {0};
    unsigned shares = scan_shares(scan, 1 + builder->helper_count);
    target->filter = filter_of(builder);
    target->rows = 0;
    target->rested_ns = 0;
    target->overfull = false;
    int status = start_copiers(builder, target, scan, copiers, shares);
    status = join_copiers(builder, copiers, shares, status);
    builder->built.generation->rested_seconds += (double)target->rested_ns / shares / 1e9;
    return status;
}

/* Now their number is known, under the same snapshot. */
static int copy_again(struct builder *builder, const struct scan *scan, struct copy_target *target)
{
    atomic_fetch_sub_explicit(&builder->rows, target->rows, memory_order_relaxed);
    filter_destroy(filter_of(builder));
    builder->built.generation->filters[builder->keyspace] = NULL;
    int status = create_filter(builder, target->rows);
    return status ? status : copy_once(builder, scan, target);
}

static int fill_filter(struct builder *builder, const struct scan *scan, struct copy_target *target)
{
    int status = copy_once(builder, scan, target);
    if (!status && !has_right_size(builder, target->rows))
        status = copy_again(builder, scan, target);
    builder->built.generation->rows += target->rows;
    if (status || !target->overfull)
        return status;
    snprintf(builder->error.text, sizeof builder->error.text,
             "the filter of keyspace %s has no place for all of its %llu rows",
             target->keyspace->name, (unsigned long long)target->rows);
    return -ENOSPC;
}

static unsigned connections_now(const struct builder *builder)
{
    bool hurried = atomic_load_explicit(&builder->hurried, memory_order_relaxed);
    return hurried ? builder->config->build_connections : 1;
}

static int copy_keyspace(struct builder *builder)
{
    struct scan scan;
    int status = scan_plan(&scan, builder->session, keyspace_of(builder), &builder->error);
    if (!status)
        status = get_helpers(builder, scan_shares(&scan, connections_now(builder)) - 1);
    if (status)
        return status;
    if (scan_shares(&scan, 1 + builder->helper_count) > 1)
        lock_for_helpers(builder);
    struct copy_target target = {.seed = builder->built.generation->seed,
                                 .keyspace = keyspace_of(builder),
                                 .keeps_copies = builder->built.stream != NULL,
                                 .scan = &scan,
                                 .counter = &builder->rows,
                                 .stop = &builder->stop,
                                 .hurried = &builder->hurried};
    if (uv_mutex_init(&target.lock))
        abort();
    status = fill_filter(builder, &scan, &target);
    uv_mutex_destroy(&target.lock);
    return status;
}

/* All are counted before the first is copied: so the total is known while the rows come. */
static int copy_rows(struct builder *builder)
{
    size_t count = builder->config->keyspace_count;
    int status = 0;
    enter(builder, BUILD_COUNTING);
    for (builder->keyspace = 0; builder->keyspace < count && !status; builder->keyspace++)
        status = make_filter(builder);
    enter(builder, BUILD_COPYING);
    atomic_store_explicit(&builder->began, clock_ms(), memory_order_relaxed);
    for (builder->keyspace = 0; builder->keyspace < count && !status; builder->keyspace++)
        status = copy_keyspace(builder);
    return status;
}

static int build(struct builder *builder)
{
    struct pg_session_options options = session_options(builder);
    int status = pg_session_open(&builder->session, &options, &builder->error);
    if (!status)
        status = build_session_read_values(builder->session, builder->config,
                                           &builder->built.values, &builder->error);
    if (!status && builder->config->sync == SYNC_REPLICATION)
        status = open_stream(builder);
    if (!status)
        status = begin_snapshot(builder);
    if (!status)
        status = copy_rows(builder);
    if (!status && builder->built.stream)
        status = build_session_end(builder->session, &builder->error);
    return status;
}

static void on_thread(uv_work_t *work)
{
    struct builder *builder = work->data;
    uint64_t began = clock_ms();
    builder->failed = build(builder) != 0;
    builder->built.generation->build_seconds = (double)(clock_ms() - began) / 1000;
    builder->built.generation->built_at = time(NULL);
    for (unsigned i = 0; i < builder->helper_count; i++)
        pg_session_close(builder->helpers[i]);
    pg_session_close(builder->session);
}

/* `status` is an error when the work was cancelled before it began. */
static void on_done(uv_work_t *work, int status)
{
    struct builder *builder = work->data;
    if (builder->failed || status)
        builder->done(builder->arg, NULL, &builder->error);
    else
        builder->done(builder->arg, &builder->built, NULL);
    built_finish(&builder->built);
    free(builder);
}

struct builder *builder_start(uv_loop_t *loop, const struct config *config, uint64_t number,
                              bool hurried, builder_done done, void *arg)
{
    struct builder *builder = xcalloc(1, sizeof *builder);
    builder->work.data = builder;
    builder->config = config;
    builder->hurried = hurried;
    builder->built.generation = generation_create(number, config->keyspace_count);
    builder->done = done;
    builder->arg = arg;
    if (uv_queue_work(loop, &builder->work, on_thread, on_done) == 0)
        return builder;
    built_finish(&builder->built);
    free(builder);
    return NULL;
}

void builder_stop(struct builder *builder)
{
    atomic_store_explicit(&builder->stop, true, memory_order_relaxed);
}

void builder_hurry(struct builder *builder, bool hurried)
{
    atomic_store_explicit(&builder->hurried, hurried, memory_order_relaxed);
}

/* The total may be an estimate. */
struct build_progress builder_progress(const struct builder *builder)
{
    uint64_t began = atomic_load_explicit(&builder->began, memory_order_relaxed);
    uint64_t rows = atomic_load_explicit(&builder->rows, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&builder->rows_total, memory_order_relaxed);
    return (struct build_progress){.phase =
                                       atomic_load_explicit(&builder->phase, memory_order_relaxed),
                                   .rows = rows,
                                   .rows_total = rows > total ? rows : total,
                                   .seconds = began ? (double)(clock_ms() - began) / 1000 : 0};
}
