/* The configuration file: one YAML file, one table of settings (settings.c), every mistake with its
 * line. A struct config is never changed after config_load(); SIGHUP loads a new one.
 */
#ifndef NESTGUARD_CONFIG_H
#define NESTGUARD_CONFIG_H

#include "base/log/log.h"
#include "base/problem.h"
#include "base/span.h"
#include "base/text/address.h"
#include "config/syntax/cache_url.h"
#include "config/syntax/dependency.h"
#include "config/syntax/key_template.h"
#include "filters/bitmap/bitmap_shape.h"
#include "filters/filter.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Choices: the values' places are those of the words in settings.c. */

/* The filter follows the rows by the database's log, by being built anew on a timer, or not at all.
 */
enum sync_mode { SYNC_REPLICATION, SYNC_POLL, SYNC_NONE };
enum on_absent { ABSENT_NIL, ABSENT_ERROR, ABSENT_VALUE };
enum on_miss { MISS_LOAD, MISS_PASS };
enum fill { FILL_STRING, FILL_HASH };
/* Of a row: the text of the key's columns, joined by ":", or the whole cache key. */
enum publish_items { PUBLISH_COLUMNS, PUBLISH_KEY };
enum { PUBLISH_LAYERS_MAX = 4 }; /* bitmaps of one that grows */

/* A Bloom filter in the cache that applications read for themselves. */
struct publish {
    char *key; /* of the bitmap; NULL: nothing is published */
    enum bitmap_format format;
    double false_positive_rate; /* share of absent items that it takes for there: 1e-7 to 0.3 */
    enum publish_items items;   /* what of a row is in it */
    bool grow;                  /* by one bitmap after the other, instead of a larger one */
};
enum cluster_commands { CLUSTER_COMMANDS_REFUSE, CLUSTER_COMMANDS_PASS };
enum cache_reads { CACHE_READS_PRIMARY, CACHE_READS_REPLICA };
/* Whether sentinels are spoken to over TLS: as the cache is, or as these say. */
enum sentinel_tls { SENTINEL_TLS_AS_CACHE, SENTINEL_TLS_ON, SENTINEL_TLS_OFF };

/* Numbers of keyspaces that one process can give out; see `keyspaces` of struct config. */
enum { KEYSPACES_MAX = 1024 };

enum { CACHE_CONNECTIONS_MAX = 64 };

struct column_list {
    char **at; /* names as the catalogue has them, no two the same */
    size_t count;
};

struct keyspace {
    char *name; /* of status, metrics and log; no two have the same */
    struct key_template key;
    char *source;       /* "file:/path" of its keys, or "push"; NULL: they are those of rows */
    double max_shrink;  /* of a source: if more than this share of the keys before is missing, it is
                           not believed */
    uint64_t settle_ms; /* a source is read when it has stayed the same for so long */
    char *table_text;   /* as written; with a source NULL, as is the rest of the table */
    char *table_schema; /* NULL: by search_path; this and the name as the catalogue has them */
    char *table_name;
    char *query;                 /* the SELECT whose rows these are, in place of a table's */
    char *where;                 /* NULL: all rows */
    char *value;                 /* column name; NULL with json, an expression or a list */
    bool value_is_json;          /* row_to_json of the whole row */
    enum fill fill;              /* what a row is in the cache */
    char *value_expression;      /* SQL over the row; NULL: none */
    struct column_list columns;  /* of the hash, with FILL_HASH; none: not a list */
    struct dependencies depends; /* other tables that values are made of */
    uint64_t ttl_ms;             /* 0: no expiry */
    char *ttl_expression;        /* SQL over the row: seconds, in place of ttl_ms; NULL: none */
    double ttl_jitter;           /* 0 to 1: a TTL is drawn from ttl * (1 - jitter) to ttl */
    double false_positive_rate;  /* wanted of its filter: a share, 1e-7 to 0.03 */
    enum filter_kind filter;
    unsigned min_keys;        /* of a source: fewer are not believed */
    enum on_absent on_absent; /* what the lookup of an absent key gets */
    char *absent_value;       /* with ABSENT_VALUE; NULL: none */
    enum on_miss on_miss;     /* what follows when the cache does not have a key */
    bool enforce;             /* false: rejections are only counted */
    struct publish publish;
    int line;     /* of the file, where the keyspace begins */
    bool retired; /* it is none any more: its key matches nothing */
};

/* Whether its keys are those of rows, so that generations have a filter of it. */
static inline bool keyspace_has_rows(const struct keyspace *keyspace)
{
    return !keyspace->retired && !keyspace->source;
}

/* Whether it is of rows, retired or not: of a table's, or of a query's. */
static inline bool keyspace_is_of_rows(const struct keyspace *keyspace)
{
    return keyspace->table_name || keyspace->query;
}

/* Whether its keys are sent to the control port. */
static inline bool keyspace_is_pushed(const struct keyspace *keyspace)
{
    return keyspace->source && strcmp(keyspace->source, "push") == 0;
}

static inline bool keyspace_has_file(const struct keyspace *keyspace)
{
    return keyspace->source && !keyspace_is_pushed(keyspace);
}

/* Of one that has a file. */
static inline const char *keyspace_source_path(const struct keyspace *keyspace)
{
    return keyspace->source + sizeof "file:" - 1;
}

/* What the limit of open files leaves room for; see file_limits.h. */
struct file_limits {
    uint64_t files;           /* that the process may have open */
    unsigned clients;         /* max_clients, or as many as there is room for */
    unsigned own_connections; /* the same of own_connections; per worker */
};

struct config {
    char *file;
    struct address *listen; /* one or more, all of them different */
    size_t listens;
    char *unix_socket_mode; /* octal; of the sockets' files */
    bool has_control;       /* else `control` is empty */
    struct address control;
    char *control_token; /* NULL: none */
    char *password;      /* NULL: none */
    unsigned workers;    /* default: one a core */
    struct cache_url cache;
    char *tls_cert_file, *tls_key_file;     /* for clients, on the addresses with TLS; NULL: none */
    char *tls_client_ca_file;               /* NULL: clients need no certificate */
    char *cache_ca_file;                    /* NULL: the system's */
    char *cache_cert_file, *cache_key_file; /* NULL: none */
    char *sentinel_user, *sentinel_password; /* of the sentinels' own; NULL: none */
    enum sentinel_tls sentinel_tls;
    enum cluster_commands cluster_commands;
    enum cache_reads cache_reads;
    char *cache_zone;          /* patterns of the replicas' hosts; NULL: all of them */
    uint64_t cache_max_lag_ms; /* no replica's word is older */
    struct ssl_ctx_st *clients_tls, *cache_tls; /* made of these; NULL: not wanted */
    struct ssl_ctx_st *sentinels_tls;           /* likewise; of the same files as the cache's */
    char *database;                             /* NULL: no keyspace has rows */
    enum sync_mode sync;
    uint64_t poll_interval_ms;  /* with SYNC_POLL, from one build's beginning to the next one's */
    uint64_t max_lag_ms;        /* with SYNC_REPLICATION: further behind, nothing is rejected */
    bool purge_at_start;        /* with SYNC_REPLICATION: whatever was cached before may be old */
    char *publication;          /* with SYNC_REPLICATION: its name, unquoted */
    unsigned build_connections; /* that a large table is read over, at most */
    unsigned load_connections;  /* to the database */
    uint64_t load_timeout_ms;   /* of one load, from the asking */
    unsigned load_budget;       /* loads at the database at once */
    size_t max_value;           /* bytes of a row's value */
    uint64_t cache_timeout_ms;  /* a connection with an older command unanswered is given up */
    unsigned cache_connections; /* shared, per worker; CACHE_CONNECTIONS_MAX at most. Beside them,
                                   where large replies are in the way, there is one more */
    unsigned own_connections;   /* of clients that need one for themselves, at most, per worker */
    unsigned max_clients;       /* of all workers */
    unsigned attack_threshold;  /* rejects a second that are an attack; 0: none are */
    unsigned max_strangers;     /* of these: in the TLS handshake, or before AUTH */
    uint64_t authentication_timeout_ms; /* they are dropped after it */
    uint64_t client_idle_timeout_ms;    /* a client that asks nothing for so long goes; 0: never */
    unsigned max_arguments;             /* of one command */
    size_t max_bulk;                    /* bytes of one argument */
    size_t max_command;                 /* bytes of one command */
    size_t max_client_memory;           /* bytes of all clients together */
    size_t max_output;                  /* bytes of replies that one may leave unread, or so */
    uint64_t output_timeout_ms; /* a client that takes none of its waiting replies for so long is
                                   dropped */
    uint64_t hint_ttl_ms;       /* how long an admitted key stays admitted without a row seen */
    unsigned max_hints;         /* admitted keys and tombstones remembered at once */
    unsigned max_known_absent;  /* false positives remembered */
    size_t max_filter_memory; /* bytes a generation, its bitmaps and sets of sources may take; 0: no
                                 bound */
    uint64_t drain_delay_ms;  /* SIGTERM: how long before nobody is let in any more */
    uint64_t drain_timeout_ms; /* SIGTERM: how long clients may finish */
    enum log_format log_format;
    enum log_level log_level;  /* what is less is not written */
    struct file_limits limits; /* what this process can keep of max_clients, own_connections */
    /* A keyspace's place is its number, which means the same keyspace for as long as the process
     * lives: what is under way when the file is read again goes by it. One that the file does not
     * have any more, or describes otherwise, is retired and keeps its place. */
    struct keyspace *keyspaces;
    size_t keyspace_count;
    bool is_draft;                    /* see config_load_draft() */
    bool lacks_cache, lacks_database; /* of a draft: it is not known where that is */
    size_t left_out;                  /* of a draft: keyspaces that were not understood */
};

/* How many tables the log is to tell of: the keyspaces' own, by their numbers, and behind them
 * those that values are made of, in the keyspaces' order and in that of `depends`. */
static inline size_t config_followed(const struct config *config)
{
    size_t count = config->keyspace_count;
    for (size_t i = 0; i < config->keyspace_count; i++)
        count += config->keyspaces[i].depends.count;
    return count;
}

/* Whether any keyspace has: else there is no database, and nothing to follow. */
static inline bool config_has_rows(const struct config *config)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (keyspace_has_rows(&config->keyspaces[i]))
            return true;
    return false;
}

/* Whether time alone ends hints, of some keyspaces at least: no generation ends a source's. */
static inline bool config_ends_hints(const struct config *config)
{
    bool ends = config->sync == SYNC_REPLICATION;
    for (size_t i = 0; i < config->keyspace_count; i++)
        ends |= config->keyspaces[i].source != NULL;
    return ends;
}

/* The one in force that has this name, or NULL. */
static inline const struct keyspace *config_find_keyspace(const struct config *config,
                                                          struct span name)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (!config->keyspaces[i].retired && span_is(name, config->keyspaces[i].name))
            return &config->keyspaces[i];
    return NULL;
}

/* Whether a replica at this host is near enough to be read from, by cache_zone. */
bool config_is_in_zone(const struct config *config, const char *host);

/* Reads and checks the file: syntax, types, ranges, and what the settings mean together. Every
 * mistake goes to `problems` with "file:line" as its place. Returns 0 and *out (freed by
 * config_destroy), -EINVAL when there were errors, or another negative errno when the file could
 * not be read (also in problems). */
int config_load(struct config **out, const char *path, struct problems *problems);
void config_destroy(struct config *config); /* NULL is allowed */

/* The same for who only asks: of a file with mistakes -EINVAL, and *out is what was understood of
 * it, a draft. Where its cache and database are may not be known, and keyspaces of which it is not
 * known what they guard are left out. NULL: nothing was understood. */
int config_load_draft(struct config **out, const char *path, struct problems *problems);

/* Prints every setting with type, default, bounds and help, as `nestguard --help` shows them. */
void config_print_settings(FILE *out);

const char *sync_mode_name(enum sync_mode mode);

#endif
