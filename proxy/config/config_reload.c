/* From a configuration that was just loaded to the one that follows the running one:
 *
 *   compare        ─▶ what differs is told, and whether it is taken
 *   keep_fixed     ─▶ what a running guard cannot change is put back to what runs
 *   give_numbers   ─▶ each keyspace has its number again, or the next one
 *
 * In this order: what is told is what the file has, before any of it is put back. What a
 * setting is, its row says; known by name are here the control token, the database and the contexts
 * of TLS alone.
 */
#include "config/config_reload.h"

#include "base/memory.h"
#include "config/config_source.h"
#include "config/file_limits.h"
#include "config/setting_value.h"
#include "net/tls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what is told ---- */

/* The texts are taken over. */
static void add(struct setting_changes *changes, struct setting_change change)
{
    changes->at = xrealloc(changes->at, (changes->count + 1) * sizeof *changes->at);
    changes->at[changes->count++] = change;
}

void setting_changes_finish(struct setting_changes *changes)
{
    for (size_t i = 0; i < changes->count; i++) {
        free(changes->at[i].keyspace);
        free(changes->at[i].what);
        free(changes->at[i].before);
        free(changes->at[i].after);
        free(changes->at[i].why);
    }
    free(changes->at);
    free(changes->cache_stays);
    *changes = (struct setting_changes){0};
}

/* The control port stays where it is: what is open to other machines is not opened to all of them
 * by a file that has it elsewhere. */
static bool opens_control(const struct setting *row, const struct config *running,
                          const struct config *wanted)
{
    return row->offset == offsetof(struct config, control_token) && !wanted->control_token &&
           running->has_control && !address_is_local(&running->control);
}

/* A process keeps to the primary of several hosts by what it sets before there are threads. A comma
 * may also be a password's: then it is one restart more. */
static bool begins_to_list_hosts(const struct setting *row, const struct config *running,
                                 const struct config *wanted)
{
    return row->offset == offsetof(struct config, database) && wanted->database &&
           strchr(wanted->database, ',') && !(running->database && strchr(running->database, ','));
}

/* What the rest leads to is looked at when it is connected to, a database and a role, too. These
 * change what the same server shows to the same role, and no connection tells of that. */
static bool shows_otherwise(const struct setting *row, const struct config *running,
                            const struct config *wanted)
{
    static const char *const words[] = {"options", "service", "servicefile", "client_encoding",
                                        "replication"};
    if (row->offset != offsetof(struct config, database))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!setting_same_in_conninfo(running->database, wanted->database, words[i]))
            return true;
    return false;
}

/* Without a database a process has no connections to it that could be led elsewhere. */
static bool begins_or_ends(const struct setting *row, const struct config *running,
                           const struct config *wanted)
{
    return row->offset == offsetof(struct config, database) &&
           !running->database != !wanted->database;
}

static bool is_kept(const struct setting *row, const struct config *running,
                    const struct config *wanted, const struct setting_changes *changes)
{
    return row->fixed || (row->moves && changes->cache_stays) ||
           opens_control(row, running, wanted) || begins_to_list_hosts(row, running, wanted) ||
           shows_otherwise(row, running, wanted) || begins_or_ends(row, running, wanted);
}

static bool has_other_files(const struct config *running, const struct config *wanted)
{
    return !tls_context_equal(running->cache_tls, wanted->cache_tls) ||
           !tls_context_equal(running->sentinels_tls, wanted->sentinels_tls);
}

static bool has_other_settings(const struct config *running, const struct config *wanted)
{
    for (const struct setting *row = config_settings; row->name; row++)
        if (row->moves && !setting_equal(row, running, wanted))
            return true;
    return false;
}

bool config_moves_cache(const struct config *running, const struct config *wanted)
{
    return has_other_settings(running, wanted) || has_other_files(running, wanted);
}

/* The names are the same, and no row tells. */
static void compare_files(const struct config *running, const struct config *wanted,
                          struct setting_changes *changes)
{
    const char *stays = changes->cache_stays;
    if (!has_other_settings(running, wanted) && has_other_files(running, wanted))
        add(changes, (struct setting_change){.what = xstrdup("the cache's TLS files"),
                                             .before = xstrdup("as they were"),
                                             .after = xstrdup("as they are now"),
                                             .taken = !stays,
                                             .why = stays ? xstrdup(stays) : NULL});
}

static void compare_setting(const struct setting *row, const struct config *running,
                            const struct config *wanted, struct setting_changes *changes)
{
    const char *stays = row->moves ? changes->cache_stays : NULL;
    add(changes, (struct setting_change){.what = xstrdup(row->name),
                                         .before = setting_text(row, running),
                                         .after = setting_text(row, wanted),
                                         .taken = !is_kept(row, running, wanted, changes),
                                         .why = stays ? xstrdup(stays) : NULL});
}

static void compare_settings(const struct config *running, const struct config *wanted,
                             struct setting_changes *changes)
{
    for (const struct setting *row = config_settings; row->name; row++)
        if (!setting_equal(row, running, wanted))
            compare_setting(row, running, wanted, changes);
    compare_files(running, wanted, changes);
}

/* A keyspace's settings are all taken: with one that .remakes it, under another number. */
static void compare_keyspace(const struct keyspace *running, const struct keyspace *wanted,
                             struct setting_changes *changes)
{
    for (const struct setting *row = keyspace_settings; row->name; row++)
        if (!setting_equal(row, running, wanted))
            add(changes, (struct setting_change){
                             .keyspace = xstrdup(wanted->name),
                             .what = xasprintf("%s of keyspace %s", row->name, wanted->name),
                             .before = setting_text(row, running),
                             .after = setting_text(row, wanted),
                             .taken = true});
}

static void tell_of_keyspace(const struct keyspace *keyspace, enum change_kind kind,
                             struct setting_changes *changes)
{
    bool is_new = kind == CHANGE_ADDED;
    add(changes, (struct setting_change){.kind = kind,
                                         .keyspace = xstrdup(keyspace->name),
                                         .what = xasprintf("keyspace %s", keyspace->name),
                                         .before = xstrdup(is_new ? "" : keyspace->key.text),
                                         .after = xstrdup(is_new ? keyspace->key.text : ""),
                                         .taken = true});
}

/* Why nothing can be published by what stays as it is, though the file was looked at with what it
 * has in its place: what stands beside another cache is not for the cluster that stays, nor what
 * stands beside the log for a guard that follows none. NULL: it can. */
static const char *unpublishable(const struct config *running, const struct publish *publish,
                                 const struct setting_changes *changes)
{
    if (changes->cache_stays && running->cache.is_cluster && !config_has_hash_tag(publish->key))
        return changes->cache_stays;
    if (running->sync != SYNC_REPLICATION)
        return "without sync: replication, which takes a restart, nothing tells of new rows";
    return NULL;
}

static void keep_unpublished(const struct config *running, struct config *wanted,
                             struct setting_changes *changes)
{
    static const struct keyspace unpublished;
    const struct setting *row = keyspace_settings;
    while (row->offset != offsetof(struct keyspace, publish))
        row++;
    for (size_t i = 0; i < wanted->keyspace_count; i++) {
        struct keyspace *keyspace = &wanted->keyspaces[i];
        const struct publish *publish = &keyspace->publish;
        const char *why = publish->key ? unpublishable(running, publish, changes) : NULL;
        if (!why)
            continue;
        add(changes, (struct setting_change){
                         .keyspace = xstrdup(keyspace->name),
                         .what = xasprintf("%s of keyspace %s", row->name, keyspace->name),
                         .before = setting_text(row, &unpublished),
                         .after = setting_text(row, keyspace),
                         .why = xstrdup(why)});
        setting_finish(row, keyspace);
        setting_copy(row, keyspace, &unpublished);
    }
}

/* For a person keyspaces are known by their names, whatever numbers they get. */
static void compare_keyspaces(const struct config *running, const struct config *wanted,
                              struct setting_changes *changes)
{
    for (size_t i = 0; i < running->keyspace_count; i++) {
        const struct keyspace *keyspace = &running->keyspaces[i];
        if (!keyspace->retired && !config_find_keyspace(wanted, span_of(keyspace->name)))
            tell_of_keyspace(keyspace, CHANGE_REMOVED, changes);
    }
    for (size_t i = 0; i < wanted->keyspace_count; i++) {
        const struct keyspace *keyspace = &wanted->keyspaces[i];
        const struct keyspace *before = config_find_keyspace(running, span_of(keyspace->name));
        if (before)
            compare_keyspace(before, keyspace, changes);
        else
            tell_of_keyspace(keyspace, CHANGE_ADDED, changes);
    }
}

/* ---- numbers ---- */

/* The same rows under the same keys: its filter holds for the other, too. */
static bool is_same_keyspace(const struct keyspace *one, const struct keyspace *other)
{
    for (const struct setting *row = keyspace_settings; row->name; row++)
        if (row->remakes && !setting_equal(row, one, other))
            return false;
    return true;
}

/* The one of this name, if it has the same rows under the same keys. */
static const struct keyspace *find_kept(const struct config *config,
                                        const struct keyspace *keyspace)
{
    const struct keyspace *same = config_find_keyspace(config, span_of(keyspace->name));
    return same && is_same_keyspace(same, keyspace) ? same : NULL;
}

bool config_has_keyspace(const struct config *config, const struct keyspace *keyspace)
{
    const struct keyspace *same = find_kept(config, keyspace);
    return same && config_same_values(same, keyspace);
}

static struct keyspace *find_same(struct config *wanted, const struct keyspace *keyspace)
{
    for (size_t i = 0; i < wanted->keyspace_count; i++)
        if (is_same_keyspace(&wanted->keyspaces[i], keyspace))
            return &wanted->keyspaces[i];
    return NULL;
}

/* A copy for the new configuration, as the running one is not changed and goes some time later. */
static struct keyspace retire(const struct keyspace *keyspace)
{
    struct keyspace retired = {.retired = true, .line = keyspace->line};
    for (const struct setting *row = keyspace_settings; row->name; row++)
        setting_copy(row, &retired, keyspace);
    key_template_close(&retired.key);
    return retired;
}

/* No two that run are the same as one that is wanted: their names differ, and a name .remakes. */
static size_t count_new(struct config *wanted, const struct config *running)
{
    size_t same = 0;
    for (size_t i = 0; i < running->keyspace_count; i++)
        same += !running->keyspaces[i].retired && find_same(wanted, &running->keyspaces[i]);
    return wanted->keyspace_count - same;
}

/* Replaces one member by a copy of what runs. */
static void keep(const struct setting *row, void *wanted, const void *running)
{
    setting_finish(row, wanted);
    setting_copy(row, wanted, running);
}

/* Moves the wanted keyspaces to where their numbers are: each as it is, what it points to goes
 * along. 0 or -ENOSPC, and then nothing was moved. */
static int give_numbers(struct config *wanted, const struct config *running)
{
    size_t count = running->keyspace_count, moved = 0;
    size_t total = count + count_new(wanted, running);
    if (total > KEYSPACES_MAX)
        return -ENOSPC;
    struct keyspace *numbered = xcalloc(total, sizeof *numbered);
    bool *taken = xcalloc(wanted->keyspace_count, sizeof *taken);
    for (size_t i = 0; i < count; i++) {
        const struct keyspace *keyspace = &running->keyspaces[i];
        struct keyspace *same = keyspace->retired ? NULL : find_same(wanted, keyspace);
        numbered[i] = same ? *same : retire(keyspace);
        if (same)
            taken[same - wanted->keyspaces] = true;
    }
    for (size_t i = 0; i < wanted->keyspace_count; i++)
        if (!taken[i])
            numbered[count + moved++] = wanted->keyspaces[i];
    free(taken);
    free(wanted->keyspaces);
    wanted->keyspaces = numbered;
    wanted->keyspace_count = total;
    return 0;
}

/* ---- all of it ---- */

/* A log says nothing of a query's rows, and its deletions need a filter that can remove. */
static bool needs_weaker_sync(const struct keyspace *keyspace)
{
    return keyspace->query || !filter_can_remove(keyspace->filter);
}

/* The file was looked at with the `sync` that it has. Whether the one that stays can have its
 * keyspaces, too: by none, the rows that a new one gets after its first generation would be denied
 * for good. That may have been nobody's choice: without rows there is nothing to follow. */
static bool can_be_followed(const struct config *running, const struct config *wanted)
{
    bool stays_blind = running->sync == SYNC_NONE && wanted->sync != SYNC_NONE;
    for (size_t i = 0; i < wanted->keyspace_count; i++) {
        const struct keyspace *keyspace = &wanted->keyspaces[i];
        if (!keyspace_has_rows(keyspace))
            continue;
        if (stays_blind ? !find_kept(running, keyspace)
                        : running->sync == SYNC_REPLICATION && needs_weaker_sync(keyspace))
            return false;
    }
    return true;
}

static void keep_context(struct ssl_ctx_st **wanted, struct ssl_ctx_st *running)
{
    tls_context_release(*wanted);
    *wanted = running;
    if (running)
        tls_context_hold(running);
}

static void keep_fixed(struct config *wanted, const struct config *running,
                       const struct setting_changes *changes)
{
    bool moves = !changes->cache_stays && config_moves_cache(running, wanted);
    for (const struct setting *row = config_settings; row->name; row++)
        if (is_kept(row, running, wanted, changes))
            keep(row, wanted, running);
    if (!moves) {
        keep_context(&wanted->cache_tls, running->cache_tls);
        keep_context(&wanted->sentinels_tls, running->sentinels_tls);
    }
    if (!wanted->clients_tls) /* the addresses that want it are still open */
        keep_context(&wanted->clients_tls, running->clients_tls);
    wanted->limits = file_limits_of(wanted, running->limits.files);
}

int config_follow(struct config *wanted, const struct config *running,
                  struct setting_changes *changes)
{
    if (!running->database && config_has_rows(wanted))
        return -ENOTSUP;
    if (!can_be_followed(running, wanted))
        return -EINVAL;
    compare_settings(running, wanted, changes);
    keep_unpublished(running, wanted, changes);
    compare_keyspaces(running, wanted, changes);
    keep_fixed(wanted, running, changes);
    return give_numbers(wanted, running);
}

bool config_moves_database(const struct config *before, const struct config *now)
{
    return before && before->database && now->database &&
           strcmp(before->database, now->database) != 0;
}

bool config_same_values(const struct keyspace *one, const struct keyspace *other)
{
    for (const struct setting *row = keyspace_settings; row->name; row++)
        if (row->revalues && !setting_equal(row, one, other))
            return false;
    return true;
}

bool config_same_publish(const struct publish *one, const struct publish *other)
{
    for (const struct setting *row = publish_settings; row->name; row++)
        if (!setting_equal(row, one, other))
            return false;
    return true;
}
