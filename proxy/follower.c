#include "follower.h"

#include "memory.h"
#include "pgoutput.h"

#include <errno.h>
#include <stdlib.h>

/* So many removals of one transaction are remembered; more, and a new generation costs less than
 * they do. */
enum { REMOVALS_MAX = 16 * 1024 * 1024 };

/* A keyspace's table as the stream last described it. */
struct tracked {
    uint32_t table;
    bool described;
    uint16_t columns;                /* of a tuple */
    uint16_t place[KEY_COLUMNS_MAX]; /* of each key column in it */
};

struct removal {
    uint32_t keyspace;
    uint64_t hash;
};

struct follower {
    struct pg_stream *stream;
    const struct config *config;
    struct generation *generation;
    struct follower_events events;
    void *arg;
    struct tracked *tracked; /* one for each keyspace */
    struct removal *removals;
    size_t removal_count, removal_size;
    struct follower_counts counts;
    struct buffer new_key, old_key;
    bool in_transaction, closed;
    uint32_t xid;  /* of the transaction that the stream is in */
    char why[256]; /* the fault */
};

/* ---- keys of rows ---- */

enum key_outcome {
    KEY_WHOLE,
    KEY_NONE /* a column is NULL: the row has no key */,
    KEY_UNKNOWN /* a column was not sent */
};

static int fault(struct follower *follower, const char *format, const char *detail)
{
    snprintf(follower->why, sizeof follower->why, format, detail);
    return -EPROTO;
}

/* Finds the key columns' values. Those that the new tuple leaves out, because an update did not
 * touch them, are taken from `spare`. */
static enum key_outcome read_columns(const struct tracked *tracked, size_t count,
                                     struct pgoutput_tuple tuple, struct span *columns, bool *given)
{
    struct pgoutput_value value;
    enum key_outcome outcome = KEY_WHOLE;
    for (uint16_t i = 0; pgoutput_tuple_next(&tuple, &value); i++) {
        for (size_t c = 0; c < count; c++) {
            if (tracked->place[c] != i || given[c])
                continue;
            if (value.kind == PGOUTPUT_NULL)
                outcome = KEY_NONE;
            given[c] = value.kind == PGOUTPUT_NULL || value.kind == PGOUTPUT_TEXT;
            columns[c] = (struct span){value.at, value.length};
        }
    }
    return outcome;
}

/* The key of `tuple`, with `spare` for values that it leaves out; into `out`. */
static enum key_outcome key_of(const struct follower *follower, int keyspace,
                               struct pgoutput_tuple tuple, struct pgoutput_tuple spare,
                               struct buffer *out)
{
    const struct key_template *key = &follower->config->keyspaces[keyspace].key;
    const struct tracked *tracked = &follower->tracked[keyspace];
    struct span columns[KEY_COLUMNS_MAX];
    bool given[KEY_COLUMNS_MAX] = {false};
    enum key_outcome outcome = read_columns(tracked, key->columns, tuple, columns, given);
    if (outcome == KEY_WHOLE && spare.at)
        outcome = read_columns(tracked, key->columns, spare, columns, given);
    if (outcome != KEY_WHOLE)
        return outcome;
    for (size_t c = 0; c < key->columns; c++)
        if (!given[c])
            return KEY_UNKNOWN;
    buffer_clear(out);
    key_template_render(key, columns, out);
    return KEY_WHOLE;
}

static uint64_t hash_of(const struct follower *follower, struct span key)
{
    return filter_hash(&follower->generation->seed, key.at, key.length);
}

/* ---- changes of rows ---- */

static int insert(struct follower *follower, int keyspace, struct span key)
{
    if (filter_insert(follower->generation->filters[keyspace], hash_of(follower, key)) < 0)
        return fault(follower, "the filter of keyspace %s is full",
                     follower->config->keyspaces[keyspace].name);
    follower->events.changed(follower->arg, keyspace, key, follower->xid);
    follower->events.inserted(follower->arg, keyspace, key);
    return 0;
}

static int remove_at_commit(struct follower *follower, int keyspace, struct span key)
{
    if (follower->removal_count == follower->removal_size) {
        if (follower->removal_size == REMOVALS_MAX)
            return fault(follower, "a transaction deletes too many rows of keyspace %s",
                         follower->config->keyspaces[keyspace].name);
        follower->removal_size = follower->removal_size ? 2 * follower->removal_size : 1024;
        follower->removals =
            xrealloc(follower->removals, follower->removal_size * sizeof *follower->removals);
    }
    follower->removals[follower->removal_count++] =
        (struct removal){(uint32_t)keyspace, hash_of(follower, key)};
    follower->events.changed(follower->arg, keyspace, key, follower->xid);
    return 0;
}

static int unknown_key(struct follower *follower, int keyspace)
{
    return fault(follower,
                 "a change of keyspace %s does not tell the row's key: its table's replica "
                 "identity must cover the key columns",
                 follower->config->keyspaces[keyspace].name);
}

static const struct pgoutput_tuple no_tuple = {0};

static int apply_insert(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    switch (key_of(follower, keyspace, event->new_tuple, no_tuple, &follower->new_key)) {
    case KEY_WHOLE:
        return insert(follower, keyspace, buffer_span(&follower->new_key));
    case KEY_NONE:
        return 0;
    case KEY_UNKNOWN:
        break;
    }
    return unknown_key(follower, keyspace);
}

static int apply_delete(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    switch (key_of(follower, keyspace, event->old_tuple, no_tuple, &follower->old_key)) {
    case KEY_WHOLE:
        return remove_at_commit(follower, keyspace, buffer_span(&follower->old_key));
    case KEY_NONE:
        return 0;
    case KEY_UNKNOWN:
        break;
    }
    return unknown_key(follower, keyspace);
}

static bool same_key(const struct follower *follower)
{
    struct span a = buffer_span(&follower->old_key), b = buffer_span(&follower->new_key);
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

/* Without an old tuple no column of the replica identity has changed, and the key columns are among
 * them. */
static int apply_update(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    enum key_outcome is =
        key_of(follower, keyspace, event->new_tuple, event->old_tuple, &follower->new_key);
    enum key_outcome was = is;
    if (event->old_tuple.at)
        was = key_of(follower, keyspace, event->old_tuple, no_tuple, &follower->old_key);
    if (is == KEY_UNKNOWN && !event->old_tuple.at) {
        follower->events.changed_unknown(follower->arg, keyspace, follower->xid);
        return 0;
    }
    if (is == KEY_UNKNOWN || was == KEY_UNKNOWN)
        return unknown_key(follower, keyspace);
    bool moved = event->old_tuple.at && (is != was || (is == KEY_WHOLE && !same_key(follower)));
    if (!moved) {
        if (is == KEY_WHOLE)
            follower->events.changed(follower->arg, keyspace, buffer_span(&follower->new_key),
                                     follower->xid);
        return 0;
    }
    int status = 0;
    if (is == KEY_WHOLE)
        status = insert(follower, keyspace, buffer_span(&follower->new_key));
    if (was == KEY_WHOLE && !status)
        status = remove_at_commit(follower, keyspace, buffer_span(&follower->old_key));
    return status;
}

static int apply_row(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    const struct tracked *tracked = &follower->tracked[keyspace];
    if (!tracked->described ||
        (event->new_tuple.at && event->new_tuple.columns != tracked->columns) ||
        (event->old_tuple.at && event->old_tuple.columns != tracked->columns))
        return fault(follower, "a change of keyspace %s came without its table's description",
                     follower->config->keyspaces[keyspace].name);
    switch (event->kind) {
    case PGOUTPUT_INSERT:
        return apply_insert(follower, keyspace, event);
    case PGOUTPUT_UPDATE:
        return apply_update(follower, keyspace, event);
    default:
        return apply_delete(follower, keyspace, event);
    }
}

static int apply_change(struct follower *follower, const struct pgoutput_event *event)
{
    int status = 0;
    follower->counts.changes++;
    for (size_t i = 0; i < follower->config->keyspace_count && !status; i++)
        if (follower->tracked[i].table == event->relation)
            status = apply_row(follower, (int)i, event);
    return status;
}

/* ---- everything else in the stream ---- */

static int find_column(struct pgoutput_relation relation, const char *name, uint16_t *place)
{
    struct pgoutput_column column;
    for (uint16_t i = 0; pgoutput_column_next(&relation, &column); i++) {
        if (strcmp(column.name, name) != 0)
            continue;
        *place = i;
        return 0;
    }
    return -ENOENT;
}

static int describe(struct follower *follower, const struct pgoutput_relation *relation)
{
    for (size_t i = 0; i < follower->config->keyspace_count; i++) {
        struct tracked *tracked = &follower->tracked[i];
        const struct key_template *key = &follower->config->keyspaces[i].key;
        if (tracked->table != relation->id)
            continue;
        tracked->described = true;
        tracked->columns = relation->columns;
        for (size_t c = 0; c < key->columns; c++)
            if (find_column(*relation, key->column[c], &tracked->place[c]) < 0)
                return fault(follower, "the table has no column %s any more", key->column[c]);
    }
    return 0;
}

static void truncate_tables(struct follower *follower, struct pgoutput_truncated list)
{
    uint32_t table;
    while (pgoutput_truncated_next(&list, &table))
        for (size_t i = 0; i < follower->config->keyspace_count; i++)
            if (follower->tracked[i].table == table)
                follower->events.truncated(follower->arg, (int)i, follower->xid);
}

static int commit(struct follower *follower, const struct pgoutput_event *event)
{
    for (size_t i = 0; i < follower->removal_count; i++) {
        struct removal *removal = &follower->removals[i];
        if (filter_remove(follower->generation->filters[removal->keyspace], removal->hash) < 0)
            return fault(follower, "a deleted row of keyspace %s was not in its filter",
                         follower->config->keyspaces[removal->keyspace].name);
    }
    follower->removal_count = 0;
    follower->in_transaction = false;
    follower->counts.transactions++;
    follower->counts.last_commit_lsn = event->lsn;
    follower->counts.last_commit_us = event->time_us;
    follower->events.reached(follower->arg, event->end_lsn);
    return 0;
}

static int apply(struct follower *follower, const struct pgoutput_event *event)
{
    switch (event->kind) {
    case PGOUTPUT_BEGIN:
        follower->in_transaction = true;
        follower->xid = event->xid;
        return 0;
    case PGOUTPUT_COMMIT:
        return commit(follower, event);
    case PGOUTPUT_RELATION:
        return describe(follower, &event->described);
    case PGOUTPUT_INSERT:
    case PGOUTPUT_UPDATE:
    case PGOUTPUT_DELETE:
        return apply_change(follower, event);
    case PGOUTPUT_TRUNCATE:
        truncate_tables(follower, event->truncated);
        return 0;
    case PGOUTPUT_TYPE:
    case PGOUTPUT_ORIGIN:
    case PGOUTPUT_MESSAGE:
        return 0;
    default:
        return fault(follower, "the stream holds %s, which was not asked for",
                     "a transaction in progress");
    }
}

static int on_message(void *arg, uint64_t lsn, const char *bytes, size_t length)
{
    struct follower *follower = arg;
    struct pgoutput_event event;
    const char *error;
    (void)lsn;
    if (follower->closed)
        return 0;
    int status = pgoutput_read(bytes, length, false, &event, &error);
    if (status)
        return fault(follower, "the log's stream cannot be read: %s", error);
    return apply(follower, &event);
}

/* In the middle of a transaction the server's position says nothing of that transaction's commit.
 */
static void on_position(void *arg, uint64_t lsn)
{
    struct follower *follower = arg;
    if (!follower->closed && !follower->in_transaction)
        follower->events.reached(follower->arg, lsn);
}

static void on_lost(void *arg, const struct pg_error *error)
{
    struct follower *follower = arg;
    if (follower->closed)
        return;
    if (!follower->why[0])
        snprintf(follower->why, sizeof follower->why, "the log's stream was lost: %.200s",
                 error->text);
    follower->events.fault(follower->arg, follower->why);
}

/* ---- life ---- */

static void on_closed(void *arg)
{
    struct follower *follower = arg;
    generation_release(follower->generation);
    buffer_finish(&follower->new_key);
    buffer_finish(&follower->old_key);
    free(follower->tracked);
    free(follower->removals);
    free(follower);
}

int follower_start(struct follower **out, uv_loop_t *loop, const struct follower_options *options,
                   struct pg_error *error)
{
    static const struct pg_stream_events events = {
        .message = on_message, .position = on_position, .lost = on_lost};
    struct follower *follower = xcalloc(1, sizeof *follower);
    follower->stream = options->stream;
    follower->config = options->config;
    follower->generation = options->generation;
    follower->generation->references++;
    follower->events = *options->events;
    follower->arg = options->arg;
    follower->tracked = xcalloc(options->config->keyspace_count, sizeof *follower->tracked);
    for (size_t i = 0; i < options->config->keyspace_count; i++)
        follower->tracked[i].table = options->tables[i];
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

void follower_pause(struct follower *follower, bool paused)
{
    pg_stream_pause(follower->stream, paused);
}

struct follower_counts follower_counts(const struct follower *follower)
{
    return follower->counts;
}

void follower_close(struct follower *follower)
{
    if (!follower || follower->closed)
        return;
    follower->closed = true;
    pg_stream_close(follower->stream, on_closed, follower);
}
