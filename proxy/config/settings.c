/* The tables. A default here is also what deploy/nestguard.yaml shows; a unit test compares them.
 */
#include "config/settings.h"

#include "base/text/wrap.h"
#include "config/config.h"
#include "config/syntax/similar.h"

#include <stdint.h>
#include <stdio.h>

#define AT(member) offsetof(struct config, member)

static const char *const cluster_commands_choices[] = {"refuse", "pass", NULL};
static const char *const cache_reads_choices[] = {"primary", "replica", NULL};
static const char *const sentinel_tls_choices[] = {"as_cache", "on", "off", NULL};
static const char *const sync_choices[] = {"replication", "poll", "none", NULL};
static const char *const filter_choices[] = {
    [FILTER_CUCKOO] = "cuckoo",
    [FILTER_BLOOM] = "bloom",
    [FILTER_BLOCKED_BLOOM] = "blocked-bloom",
    [FILTER_COUNTING_BLOOM] = "counting-bloom",
    [FILTER_SCALABLE_BLOOM] = "scalable-bloom",
    NULL,
};
static const char *const log_format_choices[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};
static const char *const log_level_choices[] = {"debug", "info", "warning", "error", NULL};
static const char *const on_absent_choices[] = {"nil", "error", "value", NULL};
static const char *const format_choices[] = {
    [BITMAP_GUAVA_64] = "guava-murmur3-128-64",
    [BITMAP_GUAVA_32] = "guava-murmur3-128-32",
    [BITMAP_CLASSIC] = "bkdr-sdbm-js",
    NULL,
};
static const char *const items_choices[] = {"columns", "key", NULL};
static const char *const on_miss_choices[] = {"load", "pass", NULL};
static const char *const fill_choices[] = {"string", "hash", NULL};

const struct setting config_settings[] = {
    {"listen", SETTING_LISTEN, AT(listen), .fixed = true, .standard = "127.0.0.1:6380",
     .help = "where clients connect: HOST:PORT, [IPV6]:PORT, tls:HOST:PORT, unix:/path, or a list "
             "of them"},
    {"tls_cert_file", SETTING_TEXT, AT(tls_cert_file), .otherwise = "required with a tls: address",
     .least = "1", .most = "4095",
     .help = "the certificate that clients are shown, with its chain (PEM); read again on SIGHUP"},
    {"tls_key_file", SETTING_TEXT, AT(tls_key_file), .otherwise = "required with a tls: address",
     .least = "1", .most = "4095", .help = "its private key (PEM)"},
    {"tls_client_ca_file", SETTING_TEXT, AT(tls_client_ca_file), .otherwise = "none", .least = "1",
     .most = "4095",
     .help = "authorities (PEM) that must have signed a client's certificate; without this setting "
             "clients on tls: addresses need none"},
    {"unix_socket_mode", SETTING_TEXT, AT(unix_socket_mode), .fixed = true, .standard = "660",
     .least = "0", .most = "4095",
     .help =
         "who may connect to unix sockets, listen's and control's, as chmod takes it; the umask "
         "does not matter"},
    {"control", SETTING_CONTROL, AT(control), .fixed = true, .otherwise = "off",
     .help = "where the control port (HTTP) is: HOST:PORT, [IPV6]:PORT or unix:/path"},
    {"control_token", SETTING_SECRET, AT(control_token), .otherwise = "none",
     .help = "callers of the control port must show it; required unless control is a loopback "
             "address or a unix socket"},
    {"password", SETTING_SECRET, AT(password), .otherwise = "none",
     .help = "clients must AUTH with it"},
    {"workers", SETTING_COUNT, AT(workers), .fixed = true, .otherwise = "one a core", .least = "1",
     .most = "256", .help = "threads that serve clients"},
    {"cache", SETTING_CACHE, AT(cache), .required = true, .moves = true,
     .help = "the Redis behind the guard: redis://[user:password@]host[:port][/db], rediss://... "
             "for TLS, or unix:/path[?db=N]; or the sentinels that know it and the name that they "
             "give it: redis-sentinel://[user:password@]host[:port],host[:port]/name[/db], "
             "rediss-sentinel://...; or nodes of a Redis Cluster: "
             "redis-cluster://[user:password@]host[:port],host[:port], rediss-cluster://..."},
    {"sentinel_user", SETTING_TEXT, AT(sentinel_user), .moves = true, .otherwise = "none",
     .least = "1", .most = "255",
     .help = "of the sentinels; that in `cache` is of the cache itself"},
    {"sentinel_password", SETTING_SECRET, AT(sentinel_password), .moves = true, .otherwise = "none",
     .help = "of the sentinels; that in `cache` is of the cache itself"},
    {"sentinel_tls", SETTING_CHOICE, AT(sentinel_tls), .moves = true, .standard = "as_cache",
     .choices = sentinel_tls_choices,
     .help = "whether sentinels are spoken to over TLS, with the same files as the cache"},
    {"cache_ca_file", SETTING_TEXT, AT(cache_ca_file), .moves = true, .otherwise = "the system's",
     .least = "1", .most = "4095",
     .help = "authorities (PEM) that must have signed the certificate of a rediss:// cache"},
    {"cache_cert_file", SETTING_TEXT, AT(cache_cert_file), .moves = true, .otherwise = "none",
     .least = "1", .most = "4095",
     .help = "the guard's own certificate (PEM), for a cache that asks for one"},
    {"cache_key_file", SETTING_TEXT, AT(cache_key_file), .moves = true, .otherwise = "none",
     .least = "1", .most = "4095", .help = "its private key (PEM)"},
    {"cache_reads", SETTING_CHOICE, AT(cache_reads), .standard = "primary",
     .choices = cache_reads_choices,
     .help = "with redis-sentinel:// and redis-cluster://, whether GET, MGET, EXISTS and reads of "
             "hashes, of guarded keys, are answered by replicas that are no further behind than "
             "cache_max_lag; all else, and what they do not have, is asked of primaries"},
    {"cache_zone", SETTING_TEXT, AT(cache_zone), .otherwise = "all replicas", .least = "1",
     .most = "4095",
     .help =
         "with cache_reads: replica, those that are near: patterns of their hosts as the primary "
         "names them, as in 10.1.*,*.a.example; without one of these primaries are read from"},
    {"cache_max_lag", SETTING_DURATION, AT(cache_max_lag_ms), .standard = "1s", .least = "200ms",
     .most = "10s",
     .help =
         "with cache_reads: replica, nothing is read from a replica that is not known to have all "
         "that its primary had so long ago"},
    {"cluster_commands", SETTING_CHOICE, AT(cluster_commands), .standard = "refuse",
     .choices = cluster_commands_choices,
     .help =
         "what becomes of CLUSTER, READONLY, READWRITE and ASKING: refused as by a Redis that is "
         "no cluster, whatever the cache is, and INFO agrees; or passed on as they are"},
    {"database", SETTING_DATABASE, AT(database), .otherwise = "required with a table",
     .help = "the PostgreSQL with the rows: postgresql://user@host:port/name, or anything else "
             "that libpq takes"},
    {"sync", SETTING_CHOICE, AT(sync), .fixed = true, .standard = "replication",
     .choices = sync_choices,
     .help = "how the filter follows the rows: the database's log, building anew on a timer, or "
             "not at all"},
    {"poll_interval", SETTING_DURATION, AT(poll_interval_ms), .standard = "10m", .least = "100ms",
     .most = "30d", .help = "with sync: poll, time from one building of the filter to the next"},
    {"max_lag", SETTING_DURATION, AT(max_lag_ms), .standard = "1s", .least = "10ms", .most = "1h",
     .help = "with sync: replication, further behind the database than this nothing is rejected"},
    {"purge_at_start", SETTING_FLAG, AT(purge_at_start), .fixed = true, .standard = "false",
     .help = "with sync: replication, deletes the guarded keys from the cache when the guard "
             "starts, for rows may have changed while none was there to purge them"},
    {"publication", SETTING_NAME, AT(publication), .fixed = true, .standard = "nestguard",
     .help = "with sync: replication, the publication that names the tables; created at the start "
             "when the role may"},
    {"build_connections", SETTING_COUNT, AT(build_connections), .standard = "2", .least = "1",
     .most = "16",
     .help = "connections to the database over which a large table's keys are read at once when a "
             "filter is built"},
    {"load_connections", SETTING_COUNT, AT(load_connections), .standard = "4", .least = "1",
     .most = "1000", .help = "connections to the database for loading rows"},
    {"load_timeout", SETTING_DURATION, AT(load_timeout_ms), .standard = "2s", .least = "10ms",
     .most = "10m",
     .help = "a load that takes longer fails, its wait for a turn at the database counted in"},
    {"load_budget", SETTING_COUNT, AT(load_budget), .standard = "200", .least = "1",
     .most = "1000000",
     .help = "loads at the database at once, at most; others wait, and hosts have turns, then "
             "their clients"},
    {"max_value", SETTING_SIZE, AT(max_value), .fixed = true, .standard = "64mb", .least = "64b",
     .most = "1gb",
     .help = "bytes of a row's value, as the database writes it (a bytea in hexadecimal); a larger "
             "one is not loaded"},
    {"cache_timeout", SETTING_DURATION, AT(cache_timeout_ms), .fixed = true, .standard = "5s",
     .least = "10ms", .most = "10m",
     .help = "a connection to the cache that leaves a command unanswered for so long is given up"},
    {"cache_connections", SETTING_COUNT, AT(cache_connections), .standard = "2", .least = "1",
     .most = "64",
     .help = "shared connections to the cache, per worker; hosts that take large replies get one "
             "beside them"},
    {"own_connections", SETTING_COUNT, AT(own_connections), .standard = "1000", .least = "0",
     .most = "1000000",
     .help = "connections to the cache that clients may have of their own (for transactions, "
             "subscriptions, blocking commands), per worker; a host may have three times as many "
             "as are left free"},
    {"max_clients", SETTING_COUNT, AT(max_clients), .standard = "10000", .least = "1",
     .most = "1000000",
     .help =
         "clients at once, as far as the limit of open files goes; more are refused, and of 1024 "
         "or more places the last sixteenth is for hosts with few"},
    {"max_strangers", SETTING_COUNT, AT(max_strangers), .standard = "1000", .least = "1",
     .most = "1000000",
     .help = "clients at once that are in the TLS handshake or have not authenticated yet; of more "
             "one is dropped that is so for longest, of the host with most"},
    {"authentication_timeout", SETTING_DURATION, AT(authentication_timeout_ms), .standard = "10s",
     .least = "100ms", .most = "1h",
     .help = "a client that takes longer for the TLS handshake and AUTH is dropped"},
    {"client_idle_timeout", SETTING_DURATION, AT(client_idle_timeout_ms), .standard = "0",
     .least = "0", .most = "365d",
     .help = "a client that asks nothing for so long is closed, but for subscribers and who waits; "
             "0: never"},
    {"attack_threshold", SETTING_COUNT, AT(attack_threshold), .standard = "1000", .least = "0",
     .most = "1000000000",
     .help = "from so many rejects a second on, log and metrics say that there is an attack, until "
             "there are fewer than half as many; 0: never"},
    {"max_arguments", SETTING_COUNT, AT(max_arguments), .standard = "1048576", .least = "8",
     .most = "16777216", .help = "arguments of one command"},
    {"max_bulk", SETTING_SIZE, AT(max_bulk), .standard = "512mb", .least = "64b", .most = "4gb",
     .help = "bytes of one argument"},
    {"max_command", SETTING_SIZE, AT(max_command), .standard = "1gb", .least = "64b", .most = "8gb",
     .help = "bytes of one command"},
    {"max_client_memory", SETTING_SIZE, AT(max_client_memory),
     .otherwise = "a quarter of the machine's memory", .least = "1mb", .most = "64tb",
     .help = "bytes of all clients together: input, lookups and replies that wait or arrive; past "
             "it the host that takes most loses its largest client"},
    {"max_output", SETTING_SIZE, AT(max_output), .standard = "64mb", .least = "1kb", .most = "64gb",
     .help = "bytes of replies that a client may leave unread; past it the client is dropped"},
    {"output_timeout", SETTING_DURATION, AT(output_timeout_ms), .standard = "30s", .least = "10ms",
     .most = "1d",
     .help = "a client that takes none of its waiting replies for so long is dropped"},
    {"hint_ttl", SETTING_DURATION, AT(hint_ttl_ms), .standard = "10s", .least = "10ms",
     .most = "1d",
     .help = "how long a key that was written through the guard, or admitted by hand, "
             "counts as existing without a row seen"},
    {"max_hints", SETTING_COUNT, AT(max_hints), .standard = "1000000", .least = "1",
     .most = "100000000",
     .help = "admitted keys and tombstones remembered at once, and keys that are to be deleted "
             "from the cache"},
    {"max_known_absent", SETTING_COUNT, AT(max_known_absent), .standard = "100000", .least = "0",
     .most = "100000000", .help = "false positives of the filter remembered at once"},
    {"max_filter_memory", SETTING_SIZE, AT(max_filter_memory), .standard = "0", .least = "0",
     .most = "64tb",
     .help = "bytes that all filters may take together, of tables and of sources, with the guard's "
             "copies of what is published; while they are renewed twice as much; 0: no bound"},
    {"drain_delay", SETTING_DURATION, AT(drain_delay_ms), .standard = "0s", .least = "0",
     .most = "1h",
     .help = "after SIGTERM, how long clients are still let in while /readyz says no: as long as a "
             "load balancer takes to notice"},
    {"drain_timeout", SETTING_DURATION, AT(drain_timeout_ms), .standard = "10s", .least = "0",
     .most = "1h",
     .help = "after SIGTERM, how long clients may finish what they have begun, and keys whose rows "
             "have changed are still deleted from the cache"},
    {"log_format", SETTING_CHOICE, AT(log_format), .standard = "text",
     .choices = log_format_choices,
     .help = "lines of the log (on standard error) for people, or a JSON object each"},
    {"log_level", SETTING_CHOICE, AT(log_level), .standard = "info", .choices = log_level_choices,
     .help = "the least that is logged; debug has each client's coming and going"},
    {"keyspaces", SETTING_KEYSPACES, AT(keyspaces), .required = true,
     .help = "the guarded keys, a list; each has the settings below"},
    {0},
};

#undef AT
#define AT(member) offsetof(struct keyspace, member)

const struct setting keyspace_settings[] = {
    {"name", SETTING_NAME, AT(name), .required = true, .remakes = true,
     .help = "how status, metrics and log call it"},
    {"key", SETTING_KEY, AT(key), .required = true, .remakes = true,
     .help = "the cache key, with a {column} for each key column, as in item:{id}"},
    {"table", SETTING_TABLE, AT(table_text), .remakes = true,
     .otherwise = "required without query and source",
     .help = "table or schema.table, by SQL's rules of quoting; with sync: poll and none a view, "
             "too"},
    {"query", SETTING_TEXT, AT(query), .remakes = true, .otherwise = "the rows of table",
     .least = "1", .most = "65535",
     .help = "in place of table, a SELECT whose rows exist: it gives the key's columns and the "
             "value's, of joins and UNIONs, too; with sync: poll and none"},
    {"source", SETTING_TEXT, AT(source), .remakes = true, .otherwise = "the rows of table",
     .least = "0", .most = "4095",
     .help = "file:/path of the keys that exist, in place of a table: a cache key a line, or what "
             "`nestguard filter build` made of such lines; taken anew when it changes; or push: "
             "the application sends such lines to the control port; needs on_miss: pass"},
    {"min_keys", SETTING_COUNT, AT(min_keys), .standard = "1", .least = "0", .most = "4294967295",
     .help = "with source, fewer keys than that are refused, and those before stay"},
    {"max_shrink", SETTING_SHARE, AT(max_shrink), .standard = "50%", .least = "0%", .most = "100%",
     .help = "with source, the share of the keys before that may be missing among the next ones; "
             "else they are refused"},
    {"settle", SETTING_DURATION, AT(settle_ms), .standard = "5s", .least = "100ms", .most = "1d",
     .help = "with source: file:, how long it must have stayed the same before it is read"},
    {"where", SETTING_TEXT, AT(where), .remakes = true, .otherwise = "all rows", .least = "1",
     .most = "65535", .help = "an SQL condition: only rows that meet it exist"},
    {"value", SETTING_VALUE, AT(value), .revalues = true,
     .otherwise = "required with on_miss: load",
     .help =
         "the column that is cached, json for the whole row as row_to_json gives it, or an SQL "
         "expression over the row: one stands in parentheses, or has one of ( ' || :: -> in it; "
         "with fill: hash a list of columns, json, or an expression that gives a JSON object"},
    {"depends", SETTING_DEPENDS, AT(depends), .remakes = true, .otherwise = "the row alone",
     .help = "other tables that values are made of, which are followed, too: a list of tables, any "
             "change of which has all of the keyspace's keys deleted from the cache, or of \"table "
             "on column = key_column\" (more behind `and`), where each of its rows tells which "
             "key; needs sync: replication"},
    {"fill", SETTING_CHOICE, AT(fill), .remakes = true, .standard = "string",
     .choices = fill_choices,
     .help = "what a row is in the cache: a string, or a hash with a field for each column, which "
             "HGET and its kin read through"},
    {"ttl", SETTING_DURATION, AT(ttl_ms), .revalues = true, .standard = "10m", .least = "0",
     .most = "3650d", .help = "how long a loaded value stays in the cache; 0: for ever"},
    {"ttl_expression", SETTING_TEXT, AT(ttl_expression), .revalues = true,
     .otherwise = "ttl, for all rows", .least = "1", .most = "65535",
     .help = "an SQL expression over the row that gives its ttl, as a number of seconds or an "
             "interval; NULL: as ttl says; 0 and less, or no number: the value is not cached"},
    {"ttl_jitter", SETTING_SHARE, AT(ttl_jitter), .standard = "10%", .least = "0%", .most = "100%",
     .help = "up to so much of the ttl is taken off at random, so that keys loaded together do not "
             "expire together"},
    {"false_positive_rate", SETTING_SHARE, AT(false_positive_rate), .standard = "0.0001",
     .least = "0.0000001", .most = "0.03",
     .help = "share of absent keys that the filter lets pass, at most"},
    {"filter", SETTING_CHOICE, AT(filter), .standard = "cuckoo", .choices = filter_choices,
     .help = "the kind of filter; sync: replication needs one that removes: cuckoo or "
             "counting-bloom"},
    {"on_absent", SETTING_CHOICE, AT(on_absent), .standard = "nil", .choices = on_absent_choices,
     .help = "the answer to a GET of an absent key: nil, an error, or absent_value"},
    {"absent_value", SETTING_TEXT, AT(absent_value), .otherwise = "required with on_absent: value",
     .least = "0", .most = "65535", .help = "with on_absent: value, the answer for an absent key"},
    {"on_miss", SETTING_CHOICE, AT(on_miss), .standard = "load", .choices = on_miss_choices,
     .help =
         "what follows a miss in the cache: load the row, or pass the miss on to an application "
         "that loads by itself"},
    {"enforce", SETTING_FLAG, AT(enforce), .standard = "true",
     .help = "false: only count what would be rejected, and let it pass"},
    {"publish", SETTING_PUBLISH, AT(publish), .otherwise = "nothing is published",
     .help = "a Bloom filter of the rows as a bitmap in the cache, for applications that look into "
             "it themselves; a mapping of the settings below; needs sync: replication"},
    {0},
};

#undef AT
#define AT(member) offsetof(struct publish, member)

const struct setting publish_settings[] = {
    {"key", SETTING_TEXT, AT(key), .required = true, .least = "1", .most = "400",
     .help = "its name in the cache; what belongs to it is called as this with :info, :lease or a "
             "number behind it"},
    {"format", SETTING_CHOICE, AT(format), .standard = "guava-murmur3-128-64",
     .choices = format_choices, .help = "which bits an item has"},
    {"false_positive_rate", SETTING_SHARE, AT(false_positive_rate), .standard = "0.01",
     .least = "0.0000001", .most = "0.3", .help = "share of absent items that it takes for there"},
    {"items", SETTING_CHOICE, AT(items), .standard = "columns", .choices = items_choices,
     .help = "the text of the key's columns, joined by :, or the whole cache key"},
    {"grow", SETTING_FLAG, AT(grow), .standard = "false",
     .help = "when it is full another bitmap is begun beside it, instead of a larger one in its "
             "place; their names end with their numbers, from 0"},
    {0},
};

_Static_assert(sizeof config_settings / sizeof *config_settings <= SETTINGS_MAX, "SETTINGS_MAX");
_Static_assert(sizeof publish_settings / sizeof *publish_settings <= SETTINGS_MAX, "SETTINGS_MAX");
_Static_assert(sizeof keyspace_settings / sizeof *keyspace_settings <= SETTINGS_MAX,
               "SETTINGS_MAX");

/* The tables are short, and asked at start only. */
int setting_index(const struct setting *table, const char *name)
{
    for (int i = 0; table[i].name; i++)
        if (strcmp(table[i].name, name) == 0)
            return i;
    return -1;
}

const struct setting *setting_similar(const struct setting *table, const char *name)
{
    const struct setting *best = NULL;
    size_t best_distance = SIZE_MAX;
    for (; table->name; table++) {
        size_t distance = name_distance(table->name, name);
        if (name_is_similar(table->name, name) && distance < best_distance) {
            best = table;
            best_distance = distance;
        }
    }
    return best;
}

const char *setting_type_name(enum setting_type type)
{
    static const char *const names[] = {
        [SETTING_COUNT] = "number",
        [SETTING_DURATION] = "duration",
        [SETTING_SIZE] = "size",
        [SETTING_SHARE] = "share",
        [SETTING_FLAG] = "true or false",
        [SETTING_CHOICE] = "one of",
        [SETTING_TEXT] = "text",
        [SETTING_NAME] = "name",
        [SETTING_SECRET] = "secret",
        [SETTING_DATABASE] = "connection string",
        [SETTING_CACHE] = "URL",
        [SETTING_CONTROL] = "address",
        [SETTING_LISTEN] = "addresses",
        [SETTING_KEYSPACES] = "list",
        [SETTING_KEY] = "key template",
        [SETTING_TABLE] = "table",
        [SETTING_VALUE] = "column, json, expression or list of columns",
        [SETTING_DEPENDS] = "list of tables",
        [SETTING_PUBLISH] = "mapping",
    };
    return names[type];
}

/* Connection strings and URLs may hold a password. */
bool setting_is_secret(const struct setting *setting)
{
    return setting->type == SETTING_SECRET || setting->type == SETTING_DATABASE ||
           setting->type == SETTING_CACHE;
}

/* The enum's values are the places in the list. */
const char *sync_mode_name(enum sync_mode mode)
{
    return sync_choices[mode];
}

void setting_print_type(const struct setting *setting, FILE *out)
{
    fputs(setting_type_name(setting->type), out);
    for (size_t i = 0; setting->choices && setting->choices[i]; i++)
        fprintf(out, "%s%s", i ? " | " : " ", setting->choices[i]);
    if (setting->least && setting->type != SETTING_TEXT)
        fprintf(out, ", %s to %s", setting->least, setting->most);
    if (setting->required)
        fputs("; required", out);
    else if (setting->standard)
        fprintf(out, "; default %s", setting->standard);
    else
        fprintf(out, "; default: %s", setting->otherwise);
    if (setting->fixed)
        fputs("; [restart]", out);
}

static void print_table(const struct setting *table, FILE *out)
{
    for (; table->name; table++) {
        fprintf(out, "  %-20s ", table->name);
        setting_print_type(table, out);
        fputc('\n', out);
        print_wrapped(table->help, 23, out);
    }
}

void config_print_settings(FILE *out)
{
    fputs("Settings of the file (YAML); ${NAME} takes a value from the environment. SIGHUP takes a "
          "change\nof all but those that need a [restart], which SIGUSR2 makes without a gap:\n",
          out);
    print_table(config_settings, out);
    fputs("\nSettings of a keyspace:\n", out);
    print_table(keyspace_settings, out);
    fputs("\nSettings of a keyspace's publish:\n", out);
    print_table(publish_settings, out);
}
