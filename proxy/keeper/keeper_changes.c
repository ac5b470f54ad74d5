/* Who subscribes to changes, and what each makes of them; see changes.h. */
#include "keeper/keeper_internal.h"

#include "base/log/log.h"

static void end_entry(void *arg, const struct key_change *change)
{
    keeper_end_entry(arg, change);
}

/* A candidate, too, may hold keys of rows that are gone, and be the only one that is told: then the
 * generation that comes after it is wanted. */
static void renew(void *arg, const struct key_change *change)
{
    struct keeper *keeper = arg;
    const char *why = change->cause == CAUSE_TRUNCATED
                          ? "its table was truncated"
                          : "savepoints of a large transaction deleted rows, if they were not "
                            "rolled back";
    log_info("keyspace %s: %s; its keys go with the generation after %llu",
             keeper_config(keeper)->keyspaces[change->key.keyspace].name, why,
             (unsigned long long)change->generation->number);
    renewal_begin(&keeper->renewal);
}

static void know(void *arg, const struct key_change *change)
{
    keeper_know(arg, change->key);
}

void keeper_open_changes(struct keeper *keeper)
{
    struct changes *changes = &keeper->changes;
    changes_subscribe(changes, SUBSCRIBER_FN_CHECKS, checking_hear, &keeper->checking);
    changes_subscribe(changes, SUBSCRIBER_UNSEEN, loading_unsee, &keeper->loading);
    changes_subscribe(changes, SUBSCRIBER_LOADS, loading_age, &keeper->loading);
    changes_subscribe(changes, SUBSCRIBER_CACHE, purging_hear, &keeper->purging);
    changes_subscribe(changes, SUBSCRIBER_CALLS, touches_hear, &keeper->touches);
    changes_subscribe(changes, SUBSCRIBER_ENTRIES, end_entry, keeper);
    changes_subscribe(changes, SUBSCRIBER_PUBLISHED, publisher_hear, keeper->publisher);
    changes_subscribe(changes, SUBSCRIBER_RENEWAL, renew, keeper);
    changes_subscribe(changes, SUBSCRIBER_SOURCES, know, keeper);
}
