/* What a message about a row means to each keyspace of its table: several may have one table, with
 * keys of different columns. An update becomes one change where the key stayed, and an insertion
 * and a deletion where it did not.
 */
#include "follow/follower_internal.h"

int follower_keep(struct follower *follower, uint32_t subxid, const struct change *change)
{
    int status = transaction_add(follower->open, subxid, change);
    return status ? follower_fault(follower,
                                   "a large transaction cannot be kept in the guard's $TMPDIR or "
                                   "/tmp, in a temporary file: %s",
                                   strerror(-status))
                  : 0;
}

static int keep_key(struct follower *follower, const struct pgoutput_event *event,
                    enum change_kind kind, int keyspace, const struct buffer *key)
{
    return follower_keep(follower, event->xid, &(struct change){kind, keyspace, buffer_span(key)});
}

/* Whether the key has to wait for its transaction's commit: that of one in progress whose share of
 * the filter's free places is used up (measure_room()). */
static bool must_wait(struct follower *follower, int keyspace)
{
    if (follower->open == follower->whole)
        return false;
    if (follower->room[keyspace] == 0)
        return true;
    follower->room[keyspace]--;
    return false;
}

/* The filter knows the key from here on, whatever becomes of the transaction: so that it need not
 * learn a million keys at once when they are committed. */
static int insert(struct follower *follower, const struct pgoutput_event *event, int keyspace)
{
    if (must_wait(follower, keyspace))
        return keep_key(follower, event, CHANGE_DUE, keyspace, &follower->new_key);
    int status = follower_put_in(follower, keyspace, buffer_span(&follower->new_key));
    return status ? status
                  : keep_key(follower, event, CHANGE_INSERTED, keyspace, &follower->new_key);
}

static int delete (struct follower *follower, const struct pgoutput_event *event, int keyspace)
{
    return keep_key(follower, event, CHANGE_DELETED, keyspace, &follower->old_key);
}

static int unknown_key(struct follower *follower, int keyspace)
{
    return follower_give_up(follower, keyspace,
                            "a change of keyspace %s does not tell the row's key: its table's "
                            "replica identity must cover the key columns");
}

static int unknown_depended(struct follower *follower, int keyspace)
{
    return follower_give_up(follower, keyspace,
                            "the replica identity of a table that keyspace %s depends on does not "
                            "cover the columns of its `on`");
}

static const struct pgoutput_tuple no_tuple = {0};

static enum row_key_outcome key_of(const struct follower *follower, int keyspace,
                                   struct pgoutput_tuple tuple, struct pgoutput_tuple spare,
                                   struct buffer *out)
{
    return row_key_read(&transaction_shapes(follower->open)[keyspace],
                        &follower->config->keyspaces[keyspace].key, tuple, spare, out);
}

static int take_insert(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    switch (key_of(follower, keyspace, event->new_tuple, no_tuple, &follower->new_key)) {
    case ROW_KEY_WHOLE:
        return insert(follower, event, keyspace);
    case ROW_KEY_NONE:
        return 0;
    case ROW_KEY_UNKNOWN:
        break;
    }
    return unknown_key(follower, keyspace);
}

static int take_delete(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    switch (key_of(follower, keyspace, event->old_tuple, no_tuple, &follower->old_key)) {
    case ROW_KEY_WHOLE:
        return delete (follower, event, keyspace);
    case ROW_KEY_NONE:
        return 0;
    case ROW_KEY_UNKNOWN:
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
 * them: else nothing is rejected of the keyspace (take_at()). Where the key is another one now, the
 * new one is put in before the old one is noted as gone: of a row that is there all the time one of
 * its keys is always known. */
static int take_update(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    enum row_key_outcome is =
        key_of(follower, keyspace, event->new_tuple, event->old_tuple, &follower->new_key);
    enum row_key_outcome was = is;
    if (event->old_tuple.at)
        was = key_of(follower, keyspace, event->old_tuple, no_tuple, &follower->old_key);
    if (is == ROW_KEY_UNKNOWN && !event->old_tuple.at)
        return follower_keep(follower, event->xid,
                             &(struct change){CHANGE_UNTOLD, keyspace, {"", 0}});
    if (is == ROW_KEY_UNKNOWN || was == ROW_KEY_UNKNOWN)
        return unknown_key(follower, keyspace);
    if (is == ROW_KEY_WHOLE && (!event->old_tuple.at || (was == is && same_key(follower))))
        return keep_key(follower, event, CHANGE_UPDATED, keyspace, &follower->new_key);
    int status = 0;
    if (is == ROW_KEY_WHOLE)
        status = insert(follower, event, keyspace);
    if (event->old_tuple.at && was == ROW_KEY_WHOLE && !status)
        status = delete (follower, event, keyspace);
    return status;
}

static int take_row(struct follower *follower, int keyspace, const struct pgoutput_event *event)
{
    if (!row_shape_fits(&transaction_shapes(follower->open)[keyspace], event))
        return follower_give_up(follower, keyspace,
                                "a change of keyspace %s came without its table's description");
    switch (event->kind) {
    case PGOUTPUT_INSERT:
        return take_insert(follower, keyspace, event);
    case PGOUTPUT_UPDATE:
        return take_update(follower, keyspace, event);
    default:
        return take_delete(follower, keyspace, event);
    }
}

/* DDL is not in the log, but the first row behind it is told with its table's description. A row
 * whose old key would not be told may have another key than it had: from here on nothing is
 * rejected of the keyspace, before the row's transaction is over. */
static int take_at(struct follower *follower, size_t place, const struct pgoutput_event *event)
{
    const struct followed *followed = &follower->followed[place];
    int status = 0;
    if (follower->described == event->relation && follower->lacking[place])
        status = followed->dependency ? unknown_depended(follower, followed->keyspace)
                                      : unknown_key(follower, followed->keyspace);
    if (status)
        return status;
    return followed->dependency ? follower_take_depended(follower, place, event)
                                : take_row(follower, (int)place, event);
}

static int take_change(struct follower *follower, const struct pgoutput_event *event)
{
    int status = 0;
    follower->counts.changes++;
    for (size_t i = 0; i < follower->followed_count && !status; i++)
        if (follower->tables[i] == event->relation)
            status = take_at(follower, i, event);
    follower->described = 0;
    return status;
}

static int take_emptied(struct follower *follower, size_t place, uint32_t subxid)
{
    const struct followed *followed = &follower->followed[place];
    if (followed->dependency)
        return follower_depended(follower, followed, subxid);
    return follower_keep(follower, subxid,
                         &(struct change){CHANGE_TRUNCATED, followed->keyspace, {"", 0}});
}

/* One message may name several tables, as TRUNCATE does, and CASCADE adds to them. */
static int take_truncate(struct follower *follower, const struct pgoutput_event *event)
{
    struct pgoutput_truncated list = event->truncated;
    uint32_t table;
    int status = 0;
    while (pgoutput_truncated_next(&list, &table))
        for (size_t i = 0; i < follower->followed_count && !status; i++)
            if (follower->tables[i] == table)
                status = take_emptied(follower, i, event->xid);
    follower->described = 0;
    return status;
}

/* An identity that was altered, and altered back since, no question to the catalogue would find. In
 * between an update may have been told without the key that the row had. The rows that it does tell
 * are taken on: nothing is rejected of the keyspace any more, but it has values in the cache. */
bool follower_has_identity(const struct follower *follower, size_t place,
                           struct pgoutput_relation described)
{
    return described.identity == follower->identities[place];
}

/* A transaction in progress may have altered the table: what it is told of it is for its own rows.
 */
static int describe_one(struct follower *follower, int keyspace, struct pgoutput_relation described)
{
    const char *missing;
    const struct key_template *key = &follower->config->keyspaces[keyspace].key;
    struct row_shape *shape = &transaction_shapes(follower->open)[keyspace];
    shape->described = 0;
    if (row_shape_read(shape, key, described, &missing) < 0)
        return follower_give_up(follower, keyspace,
                                "the table of keyspace %s lacks a column of its key");
    shape->described = follower->descriptions;
    if (!follower_has_identity(follower, (size_t)keyspace, described))
        return follower_give_up(follower, keyspace, follower_altered);
    return 0;
}

static int describe_at(struct follower *follower, size_t place, struct pgoutput_relation described)
{
    return follower->followed[place].dependency
               ? follower_describe_depended(follower, place, described)
               : describe_one(follower, (int)place, described);
}

/* The rows of a partition are told as those of the partitioned table, but by the partition's own
 * identity, and what the server describes before the first of them is the one, then the other:
 *
 *   Relation items, Relation items_1, Insert items         (pgoutput.c, maybe_send_schema())
 *
 * That of the partitioned table itself says nothing: it may have none. A truncation comes behind
 * the descriptions of all its tables, and of no partition. */
static void look_at_identity(struct follower *follower, struct pgoutput_relation described)
{
    for (size_t i = 0; i < follower->followed_count && follower->described; i++) {
        struct key_template key = follower_key(follower, i);
        if (follower->tables[i] == follower->described)
            follower->lacking[i] = !row_identity_tells(&key, described);
    }
}

/* Counted, so that of two descriptions of a table the later one can be told, whichever transaction
 * it came in (share_descriptions()). */
static int describe(struct follower *follower, const struct pgoutput_event *event)
{
    int status = 0;
    follower->descriptions++;
    for (size_t i = 0; i < follower->followed_count && !status; i++)
        if (follower->tables[i] == event->described.id) {
            follower->described = event->described.id;
            status = describe_at(follower, i, event->described);
        }
    look_at_identity(follower, event->described);
    return status;
}

int follower_take(struct follower *follower, const struct pgoutput_event *event)
{
    switch (event->kind) {
    case PGOUTPUT_RELATION:
        return describe(follower, event);
    case PGOUTPUT_TRUNCATE:
        return take_truncate(follower, event);
    default:
        return take_change(follower, event);
    }
}
