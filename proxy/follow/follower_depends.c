/* Rows of tables that values are made of beside their own row. Whose value such a row is part of it
 * tells itself, by columns that are the key's (`on`), or nobody knows: then any may be.
 *
 *   INSERT   its key             UPDATE   the key that it had, and the one that it has
 *   DELETE   the key it had      TRUNCATE, or no `on`   all of the keyspace's
 *
 * No filter hears of it: whether the keyspace has a row with the key is another table's to say.
 */
#include "follow/follower_internal.h"

#include "base/memory.h"

struct followed *follower_followed(const struct config *config)
{
    struct followed *all = xcalloc(config_followed(config), sizeof *all), *next = all;
    for (size_t i = 0; i < config->keyspace_count; i++)
        *next++ = (struct followed){.keyspace = (int)i};
    for (size_t i = 0; i < config->keyspace_count; i++)
        for (size_t j = 0; j < config->keyspaces[i].depends.count; j++)
            *next++ = (struct followed){(int)i, &config->keyspaces[i].depends.at[j]};
    return all;
}

struct key_template follower_key(const struct follower *follower, size_t place)
{
    const struct followed *followed = &follower->followed[place];
    const struct key_template *key = &follower->config->keyspaces[followed->keyspace].key;
    return followed->dependency ? dependency_key(followed->dependency, key) : *key;
}

int follower_depended(struct follower *follower, const struct followed *followed, uint32_t subxid)
{
    return follower_keep(follower, subxid,
                         &(struct change){CHANGE_DEPENDED, followed->keyspace, {"", 0}});
}

/* The key in `tuple`. What was not sent, because an update did not touch it, is in `spare`, or
 * nowhere: then any row may be meant. */
static int take_tuple(struct follower *follower, size_t place, uint32_t subxid,
                      struct pgoutput_tuple tuple, struct pgoutput_tuple spare)
{
    const struct followed *followed = &follower->followed[place];
    struct key_template key = follower_key(follower, place);
    switch (row_key_read(&transaction_shapes(follower->open)[place], &key, tuple, spare,
                         &follower->new_key)) {
    case ROW_KEY_WHOLE:
        return follower_keep(
            follower, subxid,
            &(struct change){CHANGE_UPDATED, followed->keyspace, buffer_span(&follower->new_key)});
    case ROW_KEY_NONE: /* it is part of no row's value */
        return 0;
    case ROW_KEY_UNKNOWN:
        break;
    }
    return follower_depended(follower, followed, subxid);
}

/* Without an old tuple no column of the replica identity has changed, and those of `on` are among
 * them: else the keyspace has been given up (take_at()). */
int follower_take_depended(struct follower *follower, size_t place,
                           const struct pgoutput_event *event)
{
    static const struct pgoutput_tuple none = {0};
    const struct followed *followed = &follower->followed[place];
    int status = 0;
    if (!follower_key(follower, place).columns)
        return follower_depended(follower, followed, event->xid);
    if (!row_shape_fits(&transaction_shapes(follower->open)[place], event))
        return follower_give_up(follower, followed->keyspace,
                                "a change of a table that keyspace %s depends on came without its "
                                "description");
    if (event->old_tuple.at)
        status = take_tuple(follower, place, event->xid, event->old_tuple, none);
    if (event->new_tuple.at && !status)
        status = take_tuple(follower, place, event->xid, event->new_tuple, event->old_tuple);
    return status;
}

int follower_describe_depended(struct follower *follower, size_t place,
                               struct pgoutput_relation described)
{
    const char *missing;
    const struct followed *followed = &follower->followed[place];
    struct key_template key = follower_key(follower, place);
    struct row_shape *shape = &transaction_shapes(follower->open)[place];
    shape->described = 0;
    if (row_shape_read(shape, &key, described, &missing) < 0)
        return follower_give_up(follower, followed->keyspace,
                                "a table that keyspace %s depends on lacks a column of its `on`");
    shape->described = follower->descriptions;
    if (key.columns && !follower_has_identity(follower, place, described))
        return follower_give_up(follower, followed->keyspace, follower_altered);
    return 0;
}
