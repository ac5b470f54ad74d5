/* Held removals take up places in the filters, and of a file. Where there might be too few for what
 * comes, the stream waits until they are carried out: for an answer of the database, which is as
 * long as commits that wait for the guard may take there, and better than a filter that is full.
 */
#include "follow/follower_internal.h"

enum { REMOVALS_MAX = 4000000 /* 64 MB of a temporary file */ };

static int file_fault(struct follower *follower, int status)
{
    return follower_fault(follower,
                          "keys of deleted rows cannot be kept in the guard's $TMPDIR or /tmp, in "
                          "a temporary file: %s",
                          strerror(-status));
}

/* Who catches up is told of little but what was over long before the last probe. */
int follower_remove(struct follower *follower, const struct change *change)
{
    struct removal removal = {.hash = follower_hash(follower, change->key),
                              .xid = transaction_xid(follower->ending.transaction),
                              .keyspace = (uint32_t)change->keyspace};
    if (removals_are_vouched(follower->removals, removal.xid))
        return follower_take_out(follower, change->keyspace, removal.hash);
    departing_add(&follower->generation->departing, removal.hash);
    int status = removals_hold(follower->removals, &removal);
    return status ? file_fault(follower, status) : 0;
}

int follower_next_removal(struct follower *follower)
{
    struct removal removal;
    bool vouched;
    int status = removals_next(follower->removals, &removal, &vouched);
    if (status < 0)
        return file_fault(follower, status);
    if (status == 0 || !vouched)
        return status;
    status = follower_take_out(follower, (int)removal.keyspace, removal.hash);
    departing_drop(&follower->generation->departing, removal.hash);
    return status ? status : 1;
}

bool follower_is_crowded(const struct follower *follower)
{
    if (removals_count(follower->removals) > REMOVALS_MAX)
        return true;
    for (size_t i = 0; removals_count(follower->removals) && i < follower->config->keyspace_count;
         i++) {
        size_t held = removals_of(follower->removals, (int)i);
        if (!held) /* it may have no filter */
            continue;
        struct filter_stats stats = filter_stats(follower->generation->filters[i]);
        if (stats.keys + held > stats.capacity)
            return true;
    }
    return false;
}

void follower_ask_for_word(struct follower *follower)
{
    if (!follower->closed && removals_count(follower->removals))
        follower->events.unvouched(follower->arg, follower_is_crowded(follower));
}

void follower_vouch(struct follower *follower, const char *snapshot)
{
    if (follower->closed || follower->ended)
        return;
    removals_vouch(follower->removals, snapshot);
    if (!removals_are_under_way(follower->removals))
        follower_ask_for_word(follower); /* a round would, at its end */
    follower_settle(follower);
}

size_t follower_removals(const struct follower *follower, int keyspace)
{
    return removals_of(follower->removals, keyspace);
}
