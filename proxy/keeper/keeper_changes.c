/* Who subscribes to changes, and what each makes of them; see changes.h. */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"

static void end_entries(void *arg, const struct key_change *change)
{
    struct keeper *keeper = arg;
    if (change->cause == CAUSE_RENAMED)
        entries_unbury(&keeper->entries);
    else
        keeper_end_entry(keeper, change);
}

static void on_renamed(void *arg, int keyspace)
{
    struct keeper *keeper = arg;
    struct key_change change = change_of_keyspace(CAUSE_RENAMED, keyspace);
    changes_tell(&keeper->changes, &change);
}

void keeper_learn_names(struct keeper *keeper, const char *names)
{
    values_learn(keeper->names, names, clock_ms());
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
    keeper->names = values_create(
        &(struct values_options){.keyspaces = KEYSPACES_MAX, .altered = on_renamed, .arg = keeper});
    changes_subscribe(changes, SUBSCRIBER_FN_CHECKS, checking_hear, &keeper->checking);
    changes_subscribe(changes, SUBSCRIBER_UNSEEN, loading_unsee, &keeper->loading);
    changes_subscribe(changes, SUBSCRIBER_LOADS, loading_age, &keeper->loading);
    changes_subscribe(changes, SUBSCRIBER_CACHE, purging_hear, &keeper->purging);
    changes_subscribe(changes, SUBSCRIBER_CALLS, touches_hear, &keeper->touches);
    changes_subscribe(changes, SUBSCRIBER_ENTRIES, end_entries, keeper);
    changes_subscribe(changes, SUBSCRIBER_PUBLISHED, publisher_hear, keeper->publisher);
    changes_subscribe(changes, SUBSCRIBER_RENEWAL, renew, keeper);
    changes_subscribe(changes, SUBSCRIBER_SOURCES, know, keeper);
}
