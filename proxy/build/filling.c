/* The first share that fails has the others halt; the error that is told is its own, not theirs.
 */
#include "build/filling.h"

#include "base/log/log.h"
#include "build/copy/copier.h"
#include "build/filter_size.h"
#include "database/repeated_key.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { CONNECTIONS_MAX = 1 + BUILD_HELPERS_MAX };

static struct filter **filter_of(const struct filling *filling)
{
    return &filling->generation->filters[filling->keyspace];
}

static size_t taken(const struct filling *filling)
{
    size_t beside =
        filling->beside ? atomic_load_explicit(filling->beside, memory_order_relaxed) : 0;
    return beside + filter_size_taken(filling->generation, filling->config);
}

static bool has_bitmaps(const struct filling *filling)
{
    return filter_size_taken(filling->generation, filling->config) >
           generation_bytes(filling->generation);
}

static void forget_bitmaps(struct generation *generation)
{
    for (size_t i = 0; i < generation->count; i++) {
        bitmap_destroy(generation->bitmaps[i]);
        generation->bitmaps[i] = NULL;
    }
}

static int create_filter(const struct filling *filling, uint64_t rows, struct pg_error *error)
{
    return filter_for(filter_of(filling), filling->config, filling->keyspace, rows, taken(filling),
                      error);
}

/* A bitmap that cannot be had is missed by whoever publishes it; the filters guard without. So they
 * have the memory first. */
int filling_begin(const struct filling *filling, uint64_t rows, struct pg_error *error)
{
    struct generation *generation = filling->generation;
    struct bitmap **bitmap = &generation->bitmaps[filling->keyspace];
    bitmap_destroy(*bitmap);
    *bitmap = NULL;
    int status = create_filter(filling, rows, error);
    if (status == -E2BIG && has_bitmaps(filling)) {
        forget_bitmaps(generation);
        status = create_filter(filling, rows, error);
    }
    if (!status)
        *bitmap = filter_size_bitmap(filling->config, filling->keyspace, rows, taken(filling));
    return status;
}

/* ---- shares ---- */

static int start_copiers(const struct filling *filling, const struct table_scan *scan,
                         struct copy_target *target, struct copier **copiers, unsigned count,
                         struct pg_error *error)
{
    for (unsigned i = 0; i < count; i++) {
        struct pg_session *session = i ? filling->helpers->at[i - 1] : filling->session;
        copiers[i] =
            copier_start(target, session, table_scan_sql(scan, target->keyspace, i, count));
        if (copiers[i])
            continue;
        atomic_store_explicit(filling->halt, true, memory_order_relaxed);
        snprintf(error->text, sizeof error->text, "no thread to read rows on");
        return -EAGAIN;
    }
    return 0;
}

/* Says of the first failure, which had the others stopped. */
static int join_copiers(struct copier **copiers, unsigned count, int status, struct pg_error *error)
{
    for (unsigned i = 0; i < count && copiers[i]; i++) {
        struct pg_error its;
        int ended = copier_join(copiers[i], &its);
        if (!ended || (status && status != -ECANCELED))
            continue;
        status = ended;
        *error = its;
    }
    return status;
}

/* What the copiers have rested counts by connection: so much longer the build has taken. */
static int copy_once(const struct filling *filling, const struct table_scan *scan,
                     struct copy_target *target, struct pg_error *error)
{
    struct copier *copiers[CONNECTIONS_MAX] = {0};
    unsigned shares = table_scan_shares(scan, 1 + filling->helpers->count);
    target->filter = *filter_of(filling);
    target->bitmap = filling->generation->bitmaps[filling->keyspace];
    target->rows = 0;
    target->rested_ns = 0;
    target->overfull = false;
    int status = start_copiers(filling, scan, target, copiers, shares, error);
    status = join_copiers(copiers, shares, status, error);
    filling->generation->rested_seconds += (double)target->rested_ns / shares / 1e9;
    return status;
}

/* ---- the rows ---- */

/* Now their number is known, under the same snapshot. */
static int copy_again(const struct filling *filling, const struct table_scan *scan,
                      struct copy_target *target, struct pg_error *error)
{
    atomic_fetch_sub_explicit(filling->rows, target->rows, memory_order_relaxed);
    filter_destroy(*filter_of(filling));
    *filter_of(filling) = NULL;
    int status = filling_begin(filling, target->rows, error);
    return status ? status : copy_once(filling, scan, target, error);
}

/* Overfull is looked at last: a filter that was made for an estimate is filled again before, so
 * that only one that is too small for the very number of rows, as many copies of one key make it,
 * fails. */
static int fill(const struct filling *filling, const struct table_scan *scan,
                struct copy_target *target, struct pg_error *error)
{
    struct generation *generation = filling->generation;
    int status = copy_once(filling, scan, target, error);
    if (!status && !filter_size_fits(*filter_of(filling), filling->config, target->rows))
        status = copy_again(filling, scan, target, error);
    generation->rows += target->rows;
    if (*filter_of(filling))
        generation->shared[filling->keyspace] =
            target->rows - filter_stats(*filter_of(filling)).keys;
    if (status || !target->overfull)
        return status;
    snprintf(error->text, sizeof error->text,
             "the filter of keyspace %s has no place for all of its %llu rows",
             target->keyspace->name, (unsigned long long)target->rows);
    return -ENOSPC;
}

/* What is to be done about it he alone knows who reads it; loads go on. Where a log is followed, an
 * index sees to it that there is none. */
static int tell_repeated_key(const struct filling *filling, struct pg_error *error)
{
    const struct generation *generation = filling->generation;
    const struct keyspace *keyspace = &filling->config->keyspaces[filling->keyspace];
    char *key = NULL;
    int status = 0;
    if (!filling->keeps_copies)
        status = repeated_key_find(&key, filling->session, keyspace,
                                   generation_rows(generation, filling->keyspace),
                                   generation->shared[filling->keyspace], error);
    if (key)
        log_warning("generation %llu: keyspace %s: several rows have the key %s: a load answers "
                    "with the one whose value comes first",
                    (unsigned long long)generation->number, keyspace->name, key);
    free(key);
    return status;
}

int filling_run(const struct filling *filling, const struct table_scan *scan,
                struct pg_error *error)
{
    struct copy_target target = {.seed = filling->generation->seed,
                                 .keyspace = &filling->config->keyspaces[filling->keyspace],
                                 .keeps_copies = filling->keeps_copies,
                                 .scan = scan,
                                 .counter = filling->rows,
                                 .stop = filling->halt,
                                 .hurried = filling->hurried};
    if (uv_mutex_init(&target.lock))
        abort();
    int status = fill(filling, scan, &target, error);
    uv_mutex_destroy(&target.lock);
    return status ? status : tell_repeated_key(filling, error);
}
