/* On a thread of libuv's pool, so that the keeper's loop goes on meanwhile:
 *
 *   connect ─▶ with a log to follow: publication ─▶ slot, which exports a snapshot
 *           ─▶ BEGIN, repeatable read: one snapshot for all that follows
 *           ─▶ for each keyspace: estimate, else count(*) ─▶ an empty filter of that size
 *           ─▶ for each keyspace: COPY ─▶ row ─▶ key ─▶ hash ─▶ filter
 *              (once more, into another, where the estimate was wrong)
 *           ─▶ on_done(), on the loop: the generation is handed over
 *
 * Until then the loop reads only what is atomic here.
 */
#include "builder.h"

#include "clock.h"
#include "memory.h"
#include "publication.h"

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
    /* Rows whose places in the filter are fetched from memory together. */
    BATCH_ROWS = 256
};

struct builder {
    uv_work_t work;
    const struct config *config;
    struct built built;
    struct pg_session *session;
    struct pg_error error;
    atomic_bool stop;
    _Atomic uint64_t rows, rows_total, began; /* for the keeper to look at */
    _Atomic enum build_phase phase;
    builder_done done;
    void *arg;
    bool failed;
    size_t keyspace; /* being built */
    struct buffer key;
    uint64_t hashes[BATCH_ROWS]; /* of the keyspace's rows that are not yet in its filter */
    size_t hash_count;
    bool overfull; /* a row of this keyspace found no place: from then on they are only counted */
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

/* What statistics say of a table, where two of them agree: the live rows as the server has counted
 * them since it last looked, and the rows a page that it found then, for as many pages as there are
 * now. A crash of the server loses the one, a burst of deletions belies the other. A small table is
 * counted as quickly. */
static const char estimate_sql[] =
    "SELECT s.n_live_tup FROM pg_class c JOIN pg_stat_all_tables s ON s.relid = c.oid"
    " WHERE c.oid = $1::oid AND c.relkind = 'r' AND NOT c.relhassubclass"
    " AND s.n_live_tup >= 100000 AND abs(s.n_live_tup - c.reltuples * pg_relation_size(c.oid)"
    " / (nullif(c.relpages, 0) * current_setting('block_size')::float8)) < s.n_live_tup * 0.01";

/* 0 with *rows left alone: the statistics are not to be relied on. Without a log to follow the
 * filter needs no spare places, so that a wrong estimate would always mean to copy twice. */
static int estimate_rows(struct builder *builder, uint64_t *rows)
{
    PGresult *result;
    char table[16];
    const char *values[] = {table};
    if (!builder->built.stream || keyspace_of(builder)->where)
        return 0;
    snprintf(table, sizeof table, "%u", (unsigned)builder->built.tables[builder->keyspace]);
    int status =
        pg_session_exec(builder->session, estimate_sql, 1, values, &result, &builder->error);
    if (status)
        return status;
    if (PQntuples(result) == 1)
        *rows = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return 0;
}

/* Under the snapshot, so the filter has a place for each row that COPY will give. */
static int count_rows(struct builder *builder, uint64_t *rows)
{
    PGresult *result;
    int status = execute(builder, keyspace_of(builder)->sql.count, &result);
    if (status)
        return status;
    *rows = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return 0;
}

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
    uint64_t rows = 0;
    int status = estimate_rows(builder, &rows);
    if (!status && !rows)
        status = count_rows(builder, &rows);
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

/* ---- rows ---- */

/* Several rows may have one key text. Each is an entry of its own only where a log will tell of
 * each one's removal. */
static int insert_missing(struct filter *filter, const uint64_t *hashes, size_t count)
{
    int status = 0;
    for (size_t i = 0; i < count; i++)
        filter_prefetch(filter, hashes[i]);
    for (size_t i = 0; i < count && !status; i++)
        if (!filter_contains(filter, hashes[i]))
            status = filter_insert(filter, hashes[i]);
    return status;
}

static void insert_batch(struct builder *builder)
{
    struct generation *generation = builder->built.generation;
    size_t count = builder->hash_count;
    int status = 0;
    if (builder->built.stream && !builder->overfull)
        status = filter_insert_batch(filter_of(builder), builder->hashes, count, NULL);
    else if (!builder->overfull)
        status = insert_missing(filter_of(builder), builder->hashes, count);
    builder->overfull |= status != 0;
    builder->hash_count = 0;
    generation->rows += count;
    atomic_store_explicit(&builder->rows, generation->rows, memory_order_relaxed);
}

/* The key is put together as an application writes it: lookups hash the same bytes. */
static int on_row(void *arg, const struct pg_column *columns, size_t count)
{
    struct builder *builder = arg;
    struct span texts[KEY_COLUMNS_MAX];
    for (size_t i = 0; i < count && i < KEY_COLUMNS_MAX; i++)
        texts[i] = (struct span){columns[i].at, columns[i].length};
    buffer_clear(&builder->key);
    key_template_render(&keyspace_of(builder)->key, texts, &builder->key);
    struct span key = buffer_span(&builder->key);
    builder->hashes[builder->hash_count++] =
        filter_hash(&builder->built.generation->seed, key.at, key.length);
    if (builder->hash_count == BATCH_ROWS)
        insert_batch(builder);
    return 0;
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

/* What was over in it the stream does not tell. */
static int take_snapshot(struct builder *builder)
{
    PGresult *result;
    int status = execute(builder, "SELECT pg_current_snapshot()", &result);
    if (status)
        return status;
    status = snapshot_read(&builder->built.snapshot, PQgetvalue(result, 0, 0));
    if (status)
        pg_error_say(&builder->error, "the server's snapshot is not understood");
    PQclear(result);
    return status;
}

static int begin_snapshot(struct builder *builder)
{
    char sql[128];
    int status = execute(builder, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL);
    if (status || !builder->built.stream)
        return status;
    snprintf(sql, sizeof sql, "SET TRANSACTION SNAPSHOT '%s'",
             pg_stream_snapshot(builder->built.stream));
    status = execute(builder, sql, NULL);
    return status ? status : take_snapshot(builder);
}

/* ---- the build ---- */

static int copy_once(struct builder *builder)
{
    builder->overfull = false;
    int status = pg_session_copy(builder->session, keyspace_of(builder)->sql.copy, on_row, builder,
                                 &builder->error);
    insert_batch(builder);
    return status;
}

/* Now their number is known, under the same snapshot. */
static int copy_again(struct builder *builder, uint64_t rows)
{
    struct generation *generation = builder->built.generation;
    generation->rows -= rows;
    filter_destroy(filter_of(builder));
    generation->filters[builder->keyspace] = NULL;
    int status = create_filter(builder, rows);
    return status ? status : copy_once(builder);
}

static int copy_keyspace(struct builder *builder)
{
    uint64_t before = builder->built.generation->rows;
    int status = copy_once(builder);
    uint64_t rows = builder->built.generation->rows - before;
    if (!status && !has_right_size(builder, rows))
        status = copy_again(builder, rows);
    if (status || !builder->overfull)
        return status;
    snprintf(builder->error.text, sizeof builder->error.text,
             "the filter of keyspace %s has no place for all of its %llu rows",
             keyspace_of(builder)->name, (unsigned long long)rows);
    return -ENOSPC;
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
    struct pg_session_options options = {.conninfo = builder->config->database,
                                         .application = application,
                                         .connect_timeout = CONNECT_SECONDS,
                                         .stop = &builder->stop};
    int status = pg_session_open(&builder->session, &options, &builder->error);
    if (!status && builder->config->sync == SYNC_REPLICATION)
        status = open_stream(builder);
    if (!status)
        status = begin_snapshot(builder);
    if (!status)
        status = copy_rows(builder);
    return status;
}

static void on_thread(uv_work_t *work)
{
    struct builder *builder = work->data;
    uint64_t began = clock_ms();
    builder->failed = build(builder) != 0;
    builder->built.generation->build_seconds = (double)(clock_ms() - began) / 1000;
    builder->built.generation->built_at = time(NULL);
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
    buffer_finish(&builder->key);
    free(builder);
}

struct builder *builder_start(uv_loop_t *loop, const struct config *config, uint64_t number,
                              builder_done done, void *arg)
{
    struct builder *builder = xcalloc(1, sizeof *builder);
    builder->work.data = builder;
    builder->config = config;
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
