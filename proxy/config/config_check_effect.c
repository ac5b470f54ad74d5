/* Settings that another one keeps from having any effect: whoever wrote them believes that they
 * hold. Warnings, for a file may keep what it will need again. Where the value is that of the
 * default nobody is mistaken, and a file that was written by a guard has them all.
 */
#include "config/config_source.h"

#include "base/buffer.h"
#include "config/setting_value.h"

#include <ctype.h>

/* `by` is the setting that it hangs on; nothing is said while that could not be read. */
struct idle {
    const char *name, *by, *without;
    bool (*has_effect)(const struct config *config, const struct keyspace *keyspace);
};

/* ---- what they hang on ---- */

static bool has_rows(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config_has_rows(config);
}

static bool follows(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->sync == SYNC_REPLICATION;
}

/* With `none` at how far a standby is behind. */
static bool looks_at_times(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->sync != SYNC_REPLICATION;
}

static bool reads_replicas(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->cache_reads == CACHE_READS_REPLICA;
}

static bool asks_sentinels(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->cache.primary;
}

static bool asks_by_tls(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->cache.address.tls ||
           (config->cache.primary && config->sentinel_tls == SENTINEL_TLS_ON);
}

static bool listens_by_tls(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    for (size_t i = 0; i < config->listens; i++)
        if (config->listen[i].tls)
            return true;
    return false;
}

static bool has_socket_file(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    for (size_t i = 0; i < config->listens; i++)
        if (config->listen[i].path)
            return true;
    return config->has_control && config->control.path;
}

static bool has_control(const struct config *config, const struct keyspace *keyspace)
{
    (void)keyspace;
    return config->has_control;
}

static bool gives_value(const struct config *config, const struct keyspace *keyspace)
{
    (void)config;
    return keyspace->on_absent == ABSENT_VALUE;
}

static bool has_source(const struct config *config, const struct keyspace *keyspace)
{
    (void)config;
    return keyspace->source;
}

static bool has_file(const struct config *config, const struct keyspace *keyspace)
{
    (void)config;
    return keyspace_has_file(keyspace);
}

static bool loads(const struct config *config, const struct keyspace *keyspace)
{
    (void)config;
    return keyspace->on_miss == MISS_LOAD;
}

static bool expires(const struct config *config, const struct keyspace *keyspace)
{
    return !loads(config, keyspace) || keyspace->ttl_ms || keyspace->ttl_expression;
}

/* ---- the settings ---- */

static const char rows[] = "a keyspace with a table or a query";

/* Of two rows with one name the first that says something says it. */
static const struct idle of_file[] = {
    {"database", "keyspaces", rows, has_rows},
    {"build_connections", "keyspaces", rows, has_rows},
    {"load_connections", "keyspaces", rows, has_rows},
    {"load_timeout", "keyspaces", rows, has_rows},
    {"load_budget", "keyspaces", rows, has_rows},
    {"poll_interval", "keyspaces", rows, has_rows},
    {"poll_interval", "sync", "sync: poll", looks_at_times},
    {"max_lag", "keyspaces", rows, has_rows},
    {"max_lag", "sync", "sync: replication", follows},
    {"purge_at_start", "keyspaces", rows, has_rows},
    {"purge_at_start", "sync", "sync: replication", follows},
    {"publication", "keyspaces", rows, has_rows},
    {"publication", "sync", "sync: replication", follows},
    {"cache_zone", "cache_reads", "cache_reads: replica", reads_replicas},
    {"cache_max_lag", "cache_reads", "cache_reads: replica", reads_replicas},
    {"sentinel_user", "cache", "a cache that sentinels know, redis-sentinel://", asks_sentinels},
    {"sentinel_password", "cache", "a cache that sentinels know, redis-sentinel://",
     asks_sentinels},
    {"sentinel_tls", "cache", "a cache that sentinels know, redis-sentinel://", asks_sentinels},
    {"cache_ca_file", "cache", "a cache that is asked by TLS, rediss://", asks_by_tls},
    {"cache_cert_file", "cache", "a cache that is asked by TLS, rediss://", asks_by_tls},
    {"cache_key_file", "cache", "a cache that is asked by TLS, rediss://", asks_by_tls},
    {"tls_cert_file", "listen", "an address of listen with tls:", listens_by_tls},
    {"tls_key_file", "listen", "an address of listen with tls:", listens_by_tls},
    {"tls_client_ca_file", "listen", "an address of listen with tls:", listens_by_tls},
    {"unix_socket_mode", "listen", "an address of listen or control with unix:", has_socket_file},
    {"control_token", "control", "control", has_control},
    {0},
};

static const struct idle of_keyspaces[] = {
    {"min_keys", "source", "source", has_source},
    {"max_shrink", "source", "source", has_source},
    {"settle", "source", "source: file:", has_file},
    {"absent_value", "on_absent", "on_absent: value", gives_value},
    {"ttl", "on_miss", "on_miss: load", loads},
    {"ttl_jitter", "on_miss", "on_miss: load", loads},
    {"ttl_expression", "on_miss", "on_miss: load", loads},
    {"ttl_jitter", "ttl", "a ttl", expires},
    {0},
};

/* One table of settings with what the file says of them, and their values. */
struct settings_read {
    const struct setting *table;
    const struct mention *mentions;
    const void *base;
};

static bool is_default(const struct settings_read *read, int index)
{
    const struct setting *row = &read->table[index];
    union {
        struct config config;
        struct keyspace keyspace;
    } standard = {0};
    struct setting_error error;
    if (!row->standard || setting_read(row, &standard, row->standard, &error))
        return false;
    bool same = setting_equal(row, read->base, &standard);
    setting_finish(row, &standard);
    return same;
}

static bool was_misread(const struct mention *mention)
{
    return mention->line && !mention->good;
}

/* What it hangs on is in the same table. */
static bool is_idle(const struct idle *idle, const struct settings_read *read,
                    const struct config *config, const struct keyspace *keyspace)
{
    int index = setting_index(read->table, idle->name);
    const struct mention *by = &read->mentions[setting_index(read->table, idle->by)];
    return read->mentions[index].good && !was_misread(by) && !idle->has_effect(config, keyspace) &&
           !is_default(read, index);
}

static void warn_of(const struct idle *idle, const struct settings_read *read,
                    const struct config_source *source)
{
    int line = read->mentions[setting_index(read->table, idle->name)].line;
    config_warn(source, line, "%s has no effect without %s: set that, or leave this line out",
                idle->name, idle->without);
}

static void check_table(const struct idle *table, const struct settings_read *read,
                        const struct config_source *source, const struct config *config,
                        const struct keyspace *keyspace)
{
    const char *told = "";
    for (const struct idle *idle = table; idle->name; idle++)
        if (strcmp(idle->name, told) != 0 && is_idle(idle, read, config, keyspace)) {
            warn_of(idle, read, source);
            told = idle->name;
        }
}

/* ---- keys ---- */

/* A key that is told from others by signs alone, or by nothing, takes in what was never meant. */
static bool is_told_apart(const struct key_template *key)
{
    for (size_t i = 0; i <= key->columns; i++)
        for (size_t j = 0; j < key->literal[i].length; j++)
            if (isalnum((unsigned char)key->literal[i].at[j]) || key->literal[i].at[j] & 0x80)
                return true;
    return false;
}

static void check_breadth(const struct config_source *source, const struct keyspace *keyspace,
                          const struct mention *mention)
{
    const struct key_template *key = &keyspace->key;
    if (!mention->good || is_told_apart(key))
        return;
    config_warn(
        source, mention->line,
        "key \"%s\" has no word that tells its keys from others: %s is guarded, and "
        "rejected when it is no row's; put a word of its own before it, as in %s:%s, or try "
        "it with enforce: false first",
        key->text,
        key->columns == 1 && !key->least ? "every key of the cache" : "every key of such a form",
        keyspace->name ? keyspace->name : "item", key->text);
}

void config_check_effect(const struct config *config, const struct config_source *source)
{
    struct settings_read read = {config_settings, source->settings, config};
    check_table(of_file, &read, source, config, NULL);
    for (size_t i = 0; i < config->keyspace_count; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i];
        const struct mention *mentions = source->keyspaces[i];
        struct settings_read of = {keyspace_settings, mentions, keyspace};
        if (!keyspace->line)
            continue;
        check_table(of_keyspaces, &of, source, config, keyspace);
        check_breadth(source, keyspace, &mentions[setting_index(keyspace_settings, "key")]);
    }
}
