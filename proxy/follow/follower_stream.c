/* The stream's messages, and which transaction each belongs to:
 *
 *   Begin … Commit                             one transaction, whole: `whole`
 *   Stream Start … Stop, Start … Stop, …       parts of one that is still in progress, between
 *     ─▶ Stream Commit or Stream Abort           those of others: `streamed`, found by their ids
 *
 * `open` is the one whose changes come now; NULL between transactions and between parts. Whatever
 * comes out of place ends the follower: then nothing is known of what else may be missing.
 */
#include "follow/follower_internal.h"

#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>

enum { HANDLES = 2 /* the stream and the idle handle */ };

int follower_fault(struct follower *follower, const char *format, const char *detail)
{
    snprintf(follower->why, sizeof follower->why, format, detail);
    return -EPROTO;
}

const char follower_altered[] = "a table, its publication or its partitions were altered";

int follower_give_up(struct follower *follower, int keyspace, const char *format)
{
    char why[sizeof follower->why];
    if (follower->generation->faults[keyspace])
        return 0;
    snprintf(why, sizeof why, format, follower_keyspace(follower, keyspace));
    if (follower->events.gives_up && follower->events.gives_up(follower->arg, keyspace, why))
        return 0;
    return follower_fault(follower, "%s", why);
}

const char *follower_keyspace(const struct follower *follower, int keyspace)
{
    return follower->config->keyspaces[keyspace].name;
}

uint64_t follower_hash(const struct follower *follower, struct span key)
{
    return filter_hash(&follower->generation->seed, key.at, key.length);
}

int follower_put_in(struct follower *follower, int keyspace, struct span key)
{
    if (filter_insert(follower->generation->filters[keyspace], follower_hash(follower, key)) < 0)
        return follower_give_up(follower, keyspace, "the filter of keyspace %s is full");
    return 0;
}

int follower_take_out(struct follower *follower, int keyspace, uint64_t hash)
{
    if (filter_remove(follower->generation->filters[keyspace], hash) < 0)
        return follower_give_up(follower, keyspace,
                                "a deleted row of keyspace %s was not in its filter");
    return 0;
}

/* ---- transactions ---- */

static int out_of_place(struct follower *follower)
{
    return follower_fault(follower, "the log's stream holds %s out of place",
                          "a part of a transaction");
}

/* Its memory is used again for each. */
static int begin(struct follower *follower, const struct pgoutput_event *event)
{
    if (follower->open)
        return out_of_place(follower);
    transaction_renew(follower->whole, event->xid);
    follower->open = follower->whole;
    return 0;
}

static int commit(struct follower *follower, const struct pgoutput_event *event)
{
    if (follower->open != follower->whole)
        return out_of_place(follower);
    follower->open = NULL;
    return follower_begin_ending(follower, follower->whole, true, event);
}

/* There are as many as the database has large ones under way: a few. */
static struct transaction *find_streamed(const struct follower *follower, uint32_t xid)
{
    for (size_t i = 0; i < follower->streamed_count; i++)
        if (transaction_xid(follower->streamed[i]) == xid)
            return follower->streamed[i];
    return NULL;
}

static struct transaction *add_streamed(struct follower *follower, uint32_t xid)
{
    if (follower->streamed_count == follower->streamed_size) {
        follower->streamed_size = follower->streamed_size ? 2 * follower->streamed_size : 8;
        follower->streamed =
            xrealloc(follower->streamed, follower->streamed_size * sizeof *follower->streamed);
    }
    struct transaction *transaction = transaction_create(xid, follower->followed_count);
    return follower->streamed[follower->streamed_count++] = transaction;
}

/* A transaction in progress may go on for hours, and until it ends no other generation can be
 * begun. So it never takes more than half of the places that are free: other transactions' keys
 * must find some, too. */
static void measure_room(struct follower *follower)
{
    for (size_t i = 0; i < follower->config->keyspace_count; i++) {
        if (!follower->generation->filters[i])
            continue;
        struct filter_stats stats = filter_stats(follower->generation->filters[i]);
        follower->room[i] = stats.keys < stats.capacity ? (stats.capacity - stats.keys) / 2 : 0;
    }
}

/* The first part of one that is known already is as much out of place as a later part of one that
 * is not: something was missed. */
static int stream_start(struct follower *follower, const struct pgoutput_event *event)
{
    struct transaction *known = find_streamed(follower, event->xid);
    if (follower->open || event->first_segment == (known != NULL))
        return out_of_place(follower);
    follower->open = known ? known : add_streamed(follower, event->xid);
    measure_room(follower);
    return 0;
}

static int stream_commit(struct follower *follower, const struct pgoutput_event *event)
{
    struct transaction *transaction = find_streamed(follower, event->xid);
    if (follower->open || !transaction)
        return out_of_place(follower);
    return follower_begin_ending(follower, transaction, true, event);
}

/* Of all of it, or of one of its subtransactions, which then is as if it had not been. */
static int stream_abort(struct follower *follower, const struct pgoutput_event *event)
{
    struct transaction *transaction = find_streamed(follower, event->xid);
    if (follower->open || !transaction)
        return out_of_place(follower);
    if (event->subxid == event->xid)
        return follower_begin_ending(follower, transaction, false, event);
    if (transaction_roll_back(transaction, event->subxid) < 0)
        return follower_fault(follower, "%s", "a transaction rolls back too many subtransactions");
    return 0;
}

/* 0; or a fault, which the stream ends with. */
static int apply(struct follower *follower, const struct pgoutput_event *event)
{
    switch (event->kind) {
    case PGOUTPUT_BEGIN:
        return begin(follower, event);
    case PGOUTPUT_COMMIT:
        return commit(follower, event);
    case PGOUTPUT_STREAM_START:
        return stream_start(follower, event);
    case PGOUTPUT_STREAM_STOP:
        follower->open = NULL;
        return 0;
    case PGOUTPUT_STREAM_COMMIT:
        return stream_commit(follower, event);
    case PGOUTPUT_STREAM_ABORT:
        return stream_abort(follower, event);
    case PGOUTPUT_TYPE:
    case PGOUTPUT_ORIGIN:
    case PGOUTPUT_MESSAGE:
        return 0;
    default:
        return follower->open ? follower_take(follower, event) : out_of_place(follower);
    }
}

/* ---- the stream ---- */

static int on_message(void *arg, uint64_t lsn, const char *bytes, size_t length)
{
    struct follower *follower = arg;
    struct pgoutput_event event;
    const char *error;
    (void)lsn;
    if (follower->closed || follower->ended)
        return 0;
    bool in_stream = follower->open && follower->open != follower->whole;
    int status = pgoutput_read(bytes, length, in_stream, &event, &error);
    if (status)
        return follower_fault(follower, "the log's stream cannot be read: %s", error);
    return apply(follower, &event);
}

/* In the middle of a transaction that comes whole the server's position says nothing of that
 * transaction's commit. That of one in progress lies ahead of it. */
static void on_position(void *arg, uint64_t lsn)
{
    struct follower *follower = arg;
    if (!follower->closed && !follower->ended && follower->open != follower->whole)
        follower->events.reached(follower->arg, lsn);
}

/* Also when a fault of ours has ended it: then `why` says more than the stream's error. */
static void on_lost(void *arg, const struct pg_error *error)
{
    struct follower *follower = arg;
    if (!follower->why[0])
        snprintf(follower->why, sizeof follower->why, "the log's stream was lost: %.200s",
                 error->text);
    follower_end(follower);
}

/* ---- life ---- */

/* When the last of its handles is closed. */
static void release(struct follower *follower)
{
    if (--follower->handles)
        return;
    for (size_t i = 0; i < follower->streamed_count; i++)
        transaction_destroy(follower->streamed[i]);
    free(follower->streamed);
    transaction_destroy(follower->whole);
    removals_destroy(follower->removals);
    generation_release(follower->generation);
    buffer_finish(&follower->new_key);
    buffer_finish(&follower->old_key);
    free(follower->tables);
    free(follower->identities);
    free(follower->lacking);
    free(follower->followed);
    free(follower->room);
    free(follower->left);
    free(follower);
}

static void on_closed(void *arg)
{
    release(arg);
}

static void on_idle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static struct follower *create(uv_loop_t *loop, const struct follower_options *options)
{
    size_t keyspaces = options->config->keyspace_count;
    struct follower *follower = xcalloc(1, sizeof *follower);
    follower->stream = options->stream;
    follower->handles = HANDLES;
    follower->config = options->config;
    follower->generation = options->generation;
    follower->generation->references++;
    follower->changes = options->changes;
    follower->events = *options->events;
    follower->arg = options->arg;
    follower->followed = follower_followed(options->config);
    follower->followed_count = config_followed(options->config);
    follower->tables = xcalloc(follower->followed_count, sizeof *follower->tables);
    memcpy(follower->tables, options->tables, follower->followed_count * sizeof *follower->tables);
    follower->identities = xstrdup(options->identities);
    follower->lacking = xcalloc(follower->followed_count, sizeof *follower->lacking);
    follower->room = xcalloc(keyspaces, sizeof *follower->room);
    follower->left = xcalloc(keyspaces, sizeof *follower->left);
    follower->whole = transaction_create(0, follower->followed_count);
    follower->removals = removals_create(keyspaces);
    uv_idle_init(loop, &follower->idle);
    follower->idle.data = follower;
    return follower;
}

int follower_start(struct follower **out, uv_loop_t *loop, const struct follower_options *options,
                   struct pg_error *error)
{
    static const struct pg_stream_events events = {
        .message = on_message, .position = on_position, .lost = on_lost};
    struct follower *follower = create(loop, options);
    int status = pg_stream_start(follower->stream, loop, &events, follower, error);
    if (status)
        follower_close(follower);
    else
        *out = follower;
    return status;
}

void follower_confirm(struct follower *follower, uint64_t lsn)
{
    pg_stream_confirm(follower->stream, lsn);
}

void follower_ask(struct follower *follower)
{
    pg_stream_ask(follower->stream);
}

struct follower_counts follower_counts(const struct follower *follower)
{
    struct follower_counts counts = follower->counts;
    counts.removals = removals_count(follower->removals);
    return counts;
}

void follower_close(struct follower *follower)
{
    if (!follower || follower->closed)
        return;
    follower->closed = true;
    uv_close((uv_handle_t *)&follower->idle, on_idle_closed);
    pg_stream_close(follower->stream, on_closed, follower);
}
