/* Rules that concern more than one setting. A rule holds its tongue where a setting that it needs
 * could not be read: that has been reported, and each mistake is told once. */
#include "config/config_source.h"

#include "base/buffer.h"
#include "net/tls.h"

static const struct mention *top(const struct config_source *source, const char *name)
{
    return &source->settings[setting_index(config_settings, name)];
}

static const struct mention *of(const struct config_source *source, size_t keyspace,
                                const char *name)
{
    return &source->keyspaces[keyspace][setting_index(keyspace_settings, name)];
}

/* Its value, given or by default, may be looked at. */
static bool usable(const struct mention *mention)
{
    return mention->line == 0 || mention->good;
}

/* Addresses are compared as written; that 0.0.0.0 contains 127.0.0.1 is found when they are bound.
 */
static void check_listen(const struct config *config, const struct config_source *source)
{
    int line = top(source, "listen")->line;
    for (size_t i = 0; i < config->listens; i++)
        for (size_t j = 0; j < i; j++)
            if (address_same_place(&config->listen[i], &config->listen[j]))
                config_report(source, line, "listen names %s twice", config->listen[i].text);
}

/* A cache or a control port on the guard's own address would have the guard talk to itself. */
static bool listens_on(const struct config *config, const struct address *address)
{
    for (size_t i = 0; i < config->listens; i++)
        if (address_same_place(&config->listen[i], address))
            return true;
    return false;
}

/* Without a token, only those may get in who are on this machine already. */
static void check_control(const struct config *config, const struct config_source *source)
{
    int line = top(source, "control")->line;
    if (!config->has_control)
        return;
    if (listens_on(config, &config->control))
        config_report(source, line, "control and listen are the same address");
    if (top(source, "control_token")->line == 0 && !address_is_local(&config->control))
        config_report(source, line,
                      "control is reachable from other machines, so control_token is required "
                      "(it is not for a loopback address or a unix socket)");
}

static void check_cache(const struct config *config, const struct config_source *source)
{
    const struct mention *cache = top(source, "cache");
    if (cache->good && listens_on(config, &config->cache.address))
        config_report(source, cache->line,
                      "cache is the guard's own address (see listen); it must be the Redis behind");
}

/* Of one server nobody says who its replicas are. */
static void check_reads(const struct config *config, const struct config_source *source)
{
    bool is_fleet = config->cache.primary || config->cache.is_cluster;
    if (config->cache_reads == CACHE_READS_REPLICA && top(source, "cache")->good && !is_fleet)
        config_report(source, top(source, "cache_reads")->line,
                      "cache_reads: replica needs a cache whose replicas are known: "
                      "redis-sentinel:// or redis-cluster://");
}

/* ---- TLS ---- */

/* A certificate and its key are of no use without each other. */
static bool are_paired(const struct config_source *source, const char *certificate, const char *key)
{
    int first = top(source, certificate)->line, second = top(source, key)->line;
    if (first && !second)
        config_report(source, first, "%s needs %s", certificate, key);
    if (second && !first)
        config_report(source, second, "%s needs %s", key, certificate);
    return !first == !second && usable(top(source, certificate)) && usable(top(source, key));
}

/* NULL after a report: the file that is wrong is named by it. */
static struct ssl_ctx_st *make_context(const struct config_source *source, int line,
                                       const struct tls_options *options)
{
    char error[TLS_ERROR_SIZE];
    struct ssl_ctx_st *context = NULL;
    if (tls_context_create(&context, options, error) < 0)
        config_report(source, line, "%s", error);
    return context;
}

static bool offers_tls(const struct config *config)
{
    for (size_t i = 0; i < config->listens; i++)
        if (config->listen[i].tls)
            return true;
    return false;
}

/* Read here, so that a file that is missing or wrong is a mistake of this line. */
static void check_clients_tls(struct config *config, const struct config_source *source)
{
    int line = top(source, "tls_cert_file")->line;
    if (!are_paired(source, "tls_cert_file", "tls_key_file") || !offers_tls(config))
        return;
    if (!line) {
        config_report(source, top(source, "listen")->line,
                      "a tls: address needs tls_cert_file and tls_key_file");
        return;
    }
    struct tls_options options = {.is_server = true,
                                  .certificate = config->tls_cert_file,
                                  .key = config->tls_key_file,
                                  .authorities = config->tls_client_ca_file};
    if (usable(top(source, "tls_client_ca_file")))
        config->clients_tls = make_context(source, line, &options);
}

static bool speaks_tls_to_sentinels(const struct config *config)
{
    if (!config->cache.primary || config->sentinel_tls == SENTINEL_TLS_OFF)
        return false;
    return config->cache.address.tls || config->sentinel_tls == SENTINEL_TLS_ON;
}

/* Two contexts of the same files: the sentinels' may be wanted where the cache's is not. */
static void check_cache_tls(struct config *config, const struct config_source *source)
{
    const struct mention *cache = top(source, "cache");
    bool sentinels = speaks_tls_to_sentinels(config);
    if (!are_paired(source, "cache_cert_file", "cache_key_file") || !cache->good ||
        (!config->cache.address.tls && !sentinels) || !usable(top(source, "cache_ca_file")))
        return;
    struct tls_options options = {.certificate = config->cache_cert_file,
                                  .key = config->cache_key_file,
                                  .authorities = config->cache_ca_file};
    if (config->cache.address.tls)
        config->cache_tls = make_context(source, cache->line, &options);
    if (sentinels)
        config->sentinels_tls = make_context(source, cache->line, &options);
}

bool config_cache_is_known(const struct config *config, const struct config_source *source)
{
    bool lacks_tls = (config->cache.address.tls && !config->cache_tls) ||
                     (speaks_tls_to_sentinels(config) && !config->sentinels_tls);
    return top(source, "cache")->good && !listens_on(config, &config->cache.address) &&
           !lacks_tls && usable(top(source, "sentinel_user")) &&
           usable(top(source, "sentinel_password")) && usable(top(source, "sentinel_tls"));
}

/* An argument larger than a whole command could never arrive. */
static void check_sizes(const struct config *config, const struct config_source *source)
{
    const struct mention *bulk = top(source, "max_bulk"), *command = top(source, "max_command");
    if (usable(bulk) && usable(command) && config->max_bulk > config->max_command)
        config_report(source, bulk->line ? bulk->line : command->line,
                      "max_bulk (%zu bytes) is larger than max_command (%zu bytes)",
                      config->max_bulk, config->max_command);
}

/* A default would be a guess: which column, nobody but the application knows. */
static void check_value(const struct config *config, const struct config_source *source, size_t i)
{
    const struct keyspace *keyspace = &config->keyspaces[i];
    if (of(source, i, "value")->line == 0 && !of(source, i, "source")->line &&
        usable(of(source, i, "on_miss")) && keyspace->on_miss == MISS_LOAD)
        config_report(source, keyspace->line,
                      "value is missing: the column to cache, json for the whole row, or an SQL "
                      "expression (only a keyspace with on_miss: pass needs none)");
}

/* A hash has fields, which one column's value has not; and many columns make no string. */
static void check_fill(const struct config *config, const struct config_source *source, size_t i)
{
    const struct keyspace *keyspace = &config->keyspaces[i];
    const struct mention *value = of(source, i, "value"), *fill = of(source, i, "fill");
    if (!usable(fill) || !value->good)
        return;
    if (keyspace->fill == FILL_HASH && keyspace->value)
        config_report(
            source, fill->line,
            "fill: hash needs a list of columns as value, as in [id, %s], json for all of "
            "them, or an SQL expression that gives a JSON object",
            keyspace->value);
    if (keyspace->fill == FILL_STRING && keyspace->columns.count)
        config_report(source, value->line, "a list of columns is cached as a hash: fill: hash");
}

/* Whether the keyspace has rows, as far as its settings could be read; what only these have is of
 * no use to keys from elsewhere. */
static void check_source(const struct config *config, const struct config_source *source, size_t i)
{
    static const char *const of_rows[] = {"table",          "query", "where",   "value",
                                          "ttl_expression", "fill",  "publish", "depends"};
    const struct keyspace *keyspace = &config->keyspaces[i];
    const struct mention *mention = of(source, i, "source");
    if (!mention->line && !of(source, i, "table")->line && !of(source, i, "query")->line)
        config_report(source, keyspace->line,
                      "table is missing: the rows that exist (or query: an SQL statement that "
                      "gives them; or source: the keys themselves)");
    if (!mention->good)
        return;
    if (keyspace_is_pushed(keyspace) && !top(source, "control")->line)
        config_report(source, mention->line,
                      "source: push needs control: the keys are sent to the control port");
    if (keyspace_has_file(keyspace) && strncmp(keyspace->source, "file:/", 6) != 0)
        config_report(source, mention->line,
                      "source must be file: and a whole path, as in "
                      "file:/var/lib/shop/keys.txt, or push");
    for (size_t j = 0; j < sizeof of_rows / sizeof *of_rows; j++)
        if (of(source, i, of_rows[j])->line)
            config_report(source, of(source, i, of_rows[j])->line,
                          "%s is about rows, and this keyspace has a source", of_rows[j]);
    if (usable(of(source, i, "on_miss")) && keyspace->on_miss == MISS_LOAD)
        config_report(source, mention->line,
                      "source needs on_miss: pass: there is no row that could be loaded");
}

/* Nothing in the log says when a row of it changes, no more than of a view. */
static void check_query(const struct config *config, const struct config_source *source, size_t i)
{
    const struct mention *query = of(source, i, "query"), *sync = top(source, "sync");
    if (query->line && of(source, i, "table")->line)
        config_report(source, query->line,
                      "query stands in place of table: a keyspace has the rows of one of them");
    if (query->line && usable(sync) && config->sync == SYNC_REPLICATION)
        config_report(source, query->line,
                      "query needs sync: poll or none: the database's log does not say when the "
                      "rows of a query change (or name the table that holds them, and use `where` "
                      "for a part of it)");
}

static void check_absent(const struct config *config, const struct config_source *source, size_t i)
{
    const struct mention *on_absent = of(source, i, "on_absent");
    const struct mention *absent_value = of(source, i, "absent_value");
    if (!usable(on_absent))
        return;
    bool wanted = config->keyspaces[i].on_absent == ABSENT_VALUE;
    if (wanted && absent_value->line == 0)
        config_report(source, on_absent->line, "on_absent: value needs an absent_value");
}

/* The log tells of deleted rows, too. */
static void check_filter(const struct config *config, const struct config_source *source, size_t i)
{
    const struct mention *filter = of(source, i, "filter");
    enum filter_kind kind = config->keyspaces[i].filter;
    if (of(source, i, "source")->line || !usable(filter) || !usable(top(source, "sync")) ||
        config->sync != SYNC_REPLICATION || filter_can_remove(kind))
        return;
    config_report(
        source, filter->line,
        "filter: %s cannot forget deleted rows, and sync: replication needs one that can: "
        "%s or %s",
        filter_kind_name(kind), filter_kind_name(FILTER_CUCKOO),
        filter_kind_name(FILTER_COUNTING_BLOOM));
}

/* Counters and metrics are told apart by the name. */
static void check_names(const struct config *config, const struct config_source *source, size_t i,
                        size_t j)
{
    const struct mention *mine = of(source, i, "name"), *other = of(source, j, "name");
    if (mine->good && other->good &&
        strcmp(config->keyspaces[i].name, config->keyspaces[j].name) == 0)
        config_report(source, mine->line, "name \"%s\" is taken by the keyspace in line %d",
                      config->keyspaces[i].name, other->line);
}

/* Which keyspace would a key that matches two belong to? The example shows that there is one. */
static void check_keys(const struct config *config, const struct config_source *source, size_t i,
                       size_t j)
{
    const struct key_template *mine = &config->keyspaces[i].key, *other = &config->keyspaces[j].key;
    if (!of(source, i, "key")->good || !of(source, j, "key")->good ||
        !key_template_overlaps(mine, other))
        return;
    struct buffer example = {0};
    key_template_example(mine, other, &example);
    config_report(
        source, of(source, i, "key")->line,
        "key \"%s\" overlaps with \"%s\" in line %d: \"%.*s\", for example, matches both, "
        "and a key must belong to one keyspace",
        mine->text, other->text, of(source, j, "key")->line, (int)buffer_length(&example),
        buffer_span(&example).at);
    buffer_finish(&example);
}

static void check_publish(const struct config *config, const struct config_source *source, size_t i)
{
    const struct mention *publish = of(source, i, "publish");
    if (!publish->good)
        return;
    if (usable(top(source, "sync")) && config->sync != SYNC_REPLICATION)
        config_report(source, publish->line,
                      "publish needs sync: replication: nothing else tells of new rows; with %s "
                      "applications may ask the guard itself, by BF.MEXISTS or EXISTS",
                      sync_mode_name(config->sync));
    config_check_publish(config, source, i, publish->line);
}

/* Whose key a row of the other table is part of it tells as a whole or not at all. */
static bool has_whole_key(const struct dependency *dependency, const struct key_template *key)
{
    return !dependency->columns || dependency_key(dependency, key).columns > 0;
}

static void check_depends(const struct config *config, const struct config_source *source, size_t i)
{
    const struct keyspace *keyspace = &config->keyspaces[i];
    const struct mention *depends = of(source, i, "depends"), *sync = top(source, "sync");
    if (!depends->good || !of(source, i, "key")->good)
        return;
    if (usable(sync) && config->sync != SYNC_REPLICATION)
        config_report(source, depends->line,
                      "depends needs sync: replication: with %s nobody tells when a row changes, "
                      "and a cached value is as old as its ttl allows, whatever it is made of",
                      sync_mode_name(config->sync));
    for (size_t j = 0; j < keyspace->depends.count; j++)
        if (!has_whole_key(&keyspace->depends.at[j], &keyspace->key))
            config_report(source, depends->line,
                          "depends \"%s\": behind `on` each column of the key \"%s\" stands once, "
                          "behind an = (without `on` any change of the table makes all values of "
                          "the keyspace old)",
                          keyspace->depends.at[j].text, keyspace->key.text);
}

/* Each pair is compared once, with the keyspaces before. */
static void check_keyspace(const struct config *config, const struct config_source *source,
                           size_t i)
{
    if (config->keyspaces[i].line == 0) /* not even a mapping */
        return;
    check_source(config, source, i);
    check_query(config, source, i);
    check_value(config, source, i);
    check_fill(config, source, i);
    check_absent(config, source, i);
    check_filter(config, source, i);
    check_publish(config, source, i);
    check_depends(config, source, i);
    for (size_t j = 0; j < i; j++) {
        check_names(config, source, i, j);
        check_keys(config, source, i, j);
    }
}

/* Told here, also of its length, for a row's bounds would say only that of it. */
static void check_mode(const struct config *config, const struct config_source *source)
{
    const struct mention *mode = top(source, "unix_socket_mode");
    if (mode->good && (strlen(config->unix_socket_mode) != 3 ||
                       strspn(config->unix_socket_mode, "01234567") != 3))
        config_report(source, mode->line, "unix_socket_mode is three octal digits, as in 660");
}

/* Without rows there is nothing to follow, whatever `sync` says. */
static void check_database(struct config *config, const struct config_source *source)
{
    bool has_rows = config_has_rows(config) || !config->keyspace_count;
    if (has_rows && top(source, "database")->line == 0)
        config_report(source, 1,
                      "database is missing: the PostgreSQL with the rows: "
                      "postgresql://user@host:port/name, or anything else that libpq takes");
    if (!has_rows)
        config->sync = SYNC_NONE;
}

void config_check(struct config *config, const struct config_source *source)
{
    check_database(config, source);
    check_listen(config, source);
    check_control(config, source);
    check_cache(config, source);
    check_reads(config, source);
    check_sizes(config, source);
    check_mode(config, source);
    check_clients_tls(config, source);
    check_cache_tls(config, source);
    for (size_t i = 0; i < config->keyspace_count; i++)
        check_keyspace(config, source, i);
}
