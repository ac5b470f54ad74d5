/* Several copiers fill one filter, which has one writer at a time: hashes are gathered and go in by
 * the hundred, under the target's lock. Who finds it taken reads on, as far as there is room for
 * hashes, and waits only then.
 */
#include "build/copy/copier.h"

#include "base/memory.h"
#include "build/copy/packed_keys.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

enum {
    /* Rows whose places in the filter are fetched from memory together. */
    BATCH_ROWS = 256,
    /* While another copier has the filter, reading goes on up to so many rows. */
    WAITING_ROWS = 2048
};

struct copier {
    struct copy_target *target;
    struct pg_session *session;
    char *sql;
    int status;
    struct pg_error error;
    uv_thread_t thread;
    struct buffer key, item;
    size_t count; /* of the hashes that are not yet in the filter */
    uint64_t hashes[WAITING_ROWS];
};

/* ---- into the filter ---- */

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

/* The target is locked. */
static void insert(struct copier *copier)
{
    struct copy_target *target = copier->target;
    int status = 0;
    if (target->keeps_copies && !target->overfull)
        status = filter_insert_batch(target->filter, copier->hashes, copier->count, NULL);
    else if (!target->overfull)
        status = insert_missing(target->filter, copier->hashes, copier->count);
    target->overfull |= status != 0;
    target->rows += copier->count;
    atomic_fetch_add_explicit(target->counter, copier->count, memory_order_relaxed);
    copier->count = 0;
}

static void flush(struct copier *copier)
{
    uv_mutex_lock(&copier->target->lock);
    insert(copier);
    uv_mutex_unlock(&copier->target->lock);
}

static void flush_unless_busy(struct copier *copier)
{
    if (uv_mutex_trylock(&copier->target->lock))
        return;
    insert(copier);
    uv_mutex_unlock(&copier->target->lock);
}

/* The scheduler of Linux lets a thread that has work go on for milliseconds although a worker was
 * woken meanwhile, and with SCHED_IDLE no less: it goes by what each has had, not by its priority.
 * Who sleeps again and again, for as short a time as there is (about 60 us), is never given more
 * than the few rows between, about 20 us. */
static void rest(struct copy_target *target)
{
    uint64_t began = uv_hrtime();
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
    atomic_fetch_add_explicit(&target->rested_ns, uv_hrtime() - began, memory_order_relaxed);
}

/* ---- rows ---- */

static void after_batch(struct copier *copier)
{
    flush_unless_busy(copier);
    if (!atomic_load_explicit(copier->target->hurried, memory_order_relaxed))
        rest(copier->target);
}

/* A row may be as large as its writer likes: what is put together of it fails the build, not the
 * guard. */
static int say_no_memory(struct copier *copier)
{
    pg_error_say(&copier->error, "no memory for a key of keyspace %s",
                 copier->target->keyspace->name);
    return -ENOMEM;
}

/* A key that is left out would be taken for absent. */
static int say_broken(struct copier *copier)
{
    pg_error_say(&copier->error, "the keys of keyspace %s came cut off in the middle of one",
                 copier->target->keyspace->name);
    return -EPROTO;
}

/* What its key takes at most, and the item that is published of it. */
static size_t bytes_of_key(const struct keyspace *keyspace, const struct span *columns)
{
    size_t bytes = keyspace->key.literal[keyspace->key.columns].length;
    for (size_t i = 0; i < keyspace->key.columns; i++)
        bytes += keyspace->key.literal[i].length + columns[i].length + 1;
    return bytes;
}

/* Not under the lock: bits are set by several at a time. */
static int publish(struct copier *copier, const struct span *columns)
{
    const struct keyspace *keyspace = copier->target->keyspace;
    uint64_t places[BITMAP_FUNCTIONS_MAX];
    struct span item = buffer_span(&copier->key);
    if (keyspace->publish.items == PUBLISH_COLUMNS) {
        buffer_clear(&copier->item);
        if (!buffer_try_reserve(&copier->item, bytes_of_key(keyspace, columns)))
            return say_no_memory(copier);
        key_template_join(&keyspace->key, columns, &copier->item);
        item = buffer_span(&copier->item);
    }
    bitmap_add(copier->target->bitmap, item.at, item.length, places);
    return 0;
}

/* The key is put together as an application writes it: lookups hash the same bytes. */
static int add_key(struct copier *copier, const struct span *columns)
{
    int status = 0;
    buffer_clear(&copier->key);
    if (!buffer_try_reserve(&copier->key, bytes_of_key(copier->target->keyspace, columns)))
        return say_no_memory(copier);
    key_template_render(&copier->target->keyspace->key, columns, &copier->key);
    struct span key = buffer_span(&copier->key);
    copier->hashes[copier->count++] = filter_hash(&copier->target->seed, key.at, key.length);
    if (copier->target->bitmap)
        status = publish(copier, columns);
    if (copier->count == WAITING_ROWS)
        flush(copier);
    else if (copier->count % BATCH_ROWS == 0)
        after_batch(copier);
    return status;
}

static int on_row(void *arg, const struct pg_column *columns, size_t count)
{
    struct span texts[KEY_COLUMNS_MAX];
    for (size_t i = 0; i < count && i < KEY_COLUMNS_MAX; i++)
        texts[i] = (struct span){columns[i].at, columns[i].length};
    return add_key(arg, texts);
}

static int on_packed_row(void *arg, const struct pg_column *columns, size_t count)
{
    struct copier *copier = arg;
    const struct copy_target *target = copier->target;
    struct packed_keys keys;
    struct span texts[KEY_COLUMNS_MAX];
    if (count == 0 || !columns->at)
        return 0;
    packed_keys_begin(&keys, target->scan->packing, target->keyspace->key.columns,
                      (struct span){columns->at, columns->length});
    int status = 0;
    while (!status && packed_keys_next(&keys, texts))
        status = add_key(copier, texts);
    return status || !keys.rest.length ? status : say_broken(copier);
}

/* ---- its life ---- */

/* The others would go on for nothing. */
static void on_thread(void *arg)
{
    struct copier *copier = arg;
    copier->status = pg_session_copy(copier->session, copier->sql,
                                     copier->target->scan->packed ? on_packed_row : on_row, copier,
                                     &copier->error);
    if (copier->status)
        atomic_store_explicit(copier->target->stop, true, memory_order_relaxed);
    flush(copier);
}

static void copier_free(struct copier *copier)
{
    buffer_finish(&copier->key);
    buffer_finish(&copier->item);
    free(copier->sql);
    free(copier);
}

struct copier *copier_start(struct copy_target *target, struct pg_session *session, char *sql)
{
    struct copier *copier = xcalloc(1, sizeof *copier);
    copier->target = target;
    copier->session = session;
    copier->sql = sql;
    if (uv_thread_create(&copier->thread, on_thread, copier) == 0)
        return copier;
    copier_free(copier);
    return NULL;
}

int copier_join(struct copier *copier, struct pg_error *error)
{
    uv_thread_join(&copier->thread);
    int status = copier->status;
    *error = copier->error;
    copier_free(copier);
    return status;
}
