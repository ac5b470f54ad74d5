/* On a thread of libuv's pool, so that the keeper's loop goes on meanwhile:
 *
 *   connect ─▶ BEGIN, repeatable read: one snapshot for all that follows
 *           ─▶ for each keyspace: count(*) ─▶ an empty filter of that size
 *           ─▶ for each keyspace: COPY ─▶ row ─▶ key ─▶ hash ─▶ filter
 *           ─▶ on_done(), on the loop: the generation is handed over
 *
 * Until then the loop reads only what is atomic here.
 */
#include "builder.h"

#include "clock.h"
#include "memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECT_SECONDS = 10 };

struct builder {
    uv_work_t work;
    const struct config *config;
    struct generation *generation;
    struct pg_session *session;
    struct pg_error error;
    atomic_bool stop;
    _Atomic uint64_t rows, rows_total, began; /* for the keeper to look at */
    builder_done done;
    void *arg;
    bool failed;
    size_t keyspace; /* being built */
    struct buffer key;
};

static int execute(struct builder *builder, const char *sql, PGresult **result)
{
    return pg_session_exec(builder->session, sql, 0, NULL, result, &builder->error);
}

/* Under the snapshot, so the filter has a place for each row that COPY will give. */
static int make_filter(struct builder *builder, const struct keyspace *keyspace)
{
    PGresult *result;
    const char *why;
    int status = execute(builder, keyspace->sql.count, &result);
    if (status)
        return status;
    uint64_t rows = strtoull(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    atomic_fetch_add_explicit(&builder->rows_total, rows, memory_order_relaxed);
    struct filter_options options = {.kind = FILTER_CUCKOO,
                                     .capacity = rows,
                                     .false_positive_rate = keyspace->false_positive_rate,
                                     .max_bytes = builder->config->max_filter_memory};
    status = filter_create(&builder->generation->filters[builder->keyspace], &options, &why);
    if (status)
        snprintf(builder->error.text, sizeof builder->error.text,
                 "a filter for the %llu rows of keyspace %s: %s", (unsigned long long)rows,
                 keyspace->name, why);
    return status;
}

/* The key is put together as an application writes it: lookups hash the same bytes. */
static int on_row(void *arg, const struct pg_column *columns, size_t count)
{
    struct builder *builder = arg;
    struct generation *generation = builder->generation;
    struct span texts[KEY_COLUMNS_MAX];
    for (size_t i = 0; i < count && i < KEY_COLUMNS_MAX; i++)
        texts[i] = (struct span){columns[i].at, columns[i].length};
    buffer_clear(&builder->key);
    key_template_render(&builder->config->keyspaces[builder->keyspace].key, texts, &builder->key);
    struct span key = buffer_span(&builder->key);
    uint64_t hash = filter_hash(&generation->seed, key.at, key.length);
    int status = filter_insert(generation->filters[builder->keyspace], hash);
    generation->rows++;
    atomic_store_explicit(&builder->rows, generation->rows, memory_order_relaxed);
    if (status)
        snprintf(builder->error.text, sizeof builder->error.text,
                 "the filter of keyspace %s is full after %llu rows",
                 builder->config->keyspaces[builder->keyspace].name,
                 (unsigned long long)generation->rows);
    return status;
}

/* All are counted before the first is copied: so the total is known while the rows come. */
static int build(struct builder *builder)
{
    struct pg_session_options options = {.conninfo = builder->config->database,
                                         .application = "nestguard",
                                         .connect_timeout = CONNECT_SECONDS,
                                         .stop = &builder->stop};
    int status = pg_session_open(&builder->session, &options, &builder->error);
    if (!status)
        status = execute(builder, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL);
    for (size_t i = 0; i < builder->config->keyspace_count && !status; i++) {
        builder->keyspace = i;
        status = make_filter(builder, &builder->config->keyspaces[i]);
    }
    atomic_store_explicit(&builder->began, clock_ms(), memory_order_relaxed);
    for (size_t i = 0; i < builder->config->keyspace_count && !status; i++) {
        builder->keyspace = i;
        status = pg_session_copy(builder->session, builder->config->keyspaces[i].sql.copy, on_row,
                                 builder, &builder->error);
    }
    return status;
}

static void on_thread(uv_work_t *work)
{
    struct builder *builder = work->data;
    uint64_t began = clock_ms();
    builder->failed = build(builder) != 0;
    builder->generation->build_seconds = (double)(clock_ms() - began) / 1000;
    builder->generation->built_at = time(NULL);
    pg_session_close(builder->session);
}

/* `status` is an error when the work was cancelled before it began. */
static void on_done(uv_work_t *work, int status)
{
    struct builder *builder = work->data;
    if (builder->failed || status) {
        generation_release(builder->generation);
        builder->done(builder->arg, NULL, &builder->error);
    } else {
        builder->done(builder->arg, builder->generation, NULL);
    }
    buffer_finish(&builder->key);
    free(builder);
}

struct builder *builder_start(uv_loop_t *loop, const struct config *config, uint64_t number,
                              builder_done done, void *arg)
{
    struct builder *builder = xcalloc(1, sizeof *builder);
    builder->work.data = builder;
    builder->config = config;
    builder->generation = generation_create(number, config->keyspace_count);
    builder->done = done;
    builder->arg = arg;
    if (uv_queue_work(loop, &builder->work, on_thread, on_done) == 0)
        return builder;
    generation_release(builder->generation);
    free(builder);
    return NULL;
}

void builder_stop(struct builder *builder)
{
    atomic_store_explicit(&builder->stop, true, memory_order_relaxed);
}

struct build_progress builder_progress(const struct builder *builder)
{
    uint64_t began = atomic_load_explicit(&builder->began, memory_order_relaxed);
    return (struct build_progress){
        .rows = atomic_load_explicit(&builder->rows, memory_order_relaxed),
        .rows_total = atomic_load_explicit(&builder->rows_total, memory_order_relaxed),
        .seconds = began ? (double)(clock_ms() - began) / 1000 : 0};
}
