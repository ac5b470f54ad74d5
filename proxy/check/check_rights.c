/* ACL DRYRUN is for administrators and not in every server; trying is for everybody. Servers hold a
 * command against the user's rights before they queue it in a transaction, so all of them are
 * queued and then discarded. For users who may not even MULTI each has arguments with which it does
 * nothing: a key that nobody has, a TTL of zero, an offset below zero.
 */
#include "check/check_rights.h"

#include "base/memory.h"
#include "base/span.h"
#include "redis/redis_survey.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { WORDS_MAX = 6 };

/* Who needs a command. From FOR_ROWS on it is tried with a key of each keyspace of that kind. */
enum need_for {
    FOR_ALL,
    FOR_ONE_SERVER, /* no cluster */
    FOR_CLUSTER,
    FOR_REPLICAS, /* of a cluster, which are read from */
    FOR_SWEEPS,   /* once, when a keyspace has rows */
    FOR_ROWS,
    FOR_STRING_FILLS,
    FOR_HASH_FILLS,
    FOR_STRINGS,
    FOR_HASHES,
    FOR_PUBLISHING /* with a key of the bitmap's */
};

static const char key_word[] = "{key}", db_word[] = "{db}";

#define STALE "changed and deleted rows would stay in the cache until their ttl ends: stale values"
#define UNFILLED "no row would be cached, and every lookup of one goes to the database"
#define UNREAD "clients' lookups of rows with it are answered with the cache's refusal"
#define UNPUBLISHED "publish could not keep its filter"

static const struct need {
    const char *name, *right;
    const char *words[WORDS_MAX + 1]; /* ends with NULL */
    enum need_for whose;
    enum problem_level level; /* PROBLEM_ERROR: as bad as a cache that is down */
    const char *lost;
} needs[] = {
    {"DEL", "+del", {"DEL", key_word}, FOR_ROWS, PROBLEM_ERROR, STALE},
    {"SET",
     "+set",
     {"SET", key_word, "", "PX", "0", "NX"},
     FOR_STRING_FILLS,
     PROBLEM_ERROR,
     UNFILLED},
    {"RESTORE",
     "+restore",
     {"RESTORE", key_word, "0", "x"},
     FOR_HASH_FILLS,
     PROBLEM_ERROR,
     UNFILLED},
    {"GET", "+get", {"GET", key_word}, FOR_STRINGS, PROBLEM_ERROR, UNREAD},
    {"MGET", "+mget", {"MGET", key_word}, FOR_STRINGS, PROBLEM_WARNING, UNREAD},
    {"HGET", "+hget", {"HGET", key_word, "x"}, FOR_HASHES, PROBLEM_WARNING, UNREAD},
    {"HMGET", "+hmget", {"HMGET", key_word, "x"}, FOR_HASHES, PROBLEM_WARNING, UNREAD},
    {"HGETALL", "+hgetall", {"HGETALL", key_word}, FOR_HASHES, PROBLEM_WARNING, UNREAD},
    {"EXISTS", "+exists", {"EXISTS", key_word}, FOR_ROWS, PROBLEM_WARNING, UNREAD},
    {"SCAN",
     "+scan",
     {"SCAN", "0", "COUNT", "1"},
     FOR_SWEEPS,
     PROBLEM_ERROR,
     "after a restart or failover of the cache its guarded keys could not be deleted: stale "
     "values"},
    {"SELECT",
     "+select",
     {"SELECT", db_word},
     FOR_ONE_SERVER,
     PROBLEM_ERROR,
     "no client's command would reach the cache"},
    {"CLUSTER SLOTS",
     "+cluster|slots",
     {"CLUSTER", "SLOTS"},
     FOR_CLUSTER,
     PROBLEM_ERROR,
     "the guard does not learn which node has a key"},
    {"ASKING",
     "+asking",
     {"ASKING"},
     FOR_CLUSTER,
     PROBLEM_ERROR,
     "keys in slots that are being moved can be neither read nor deleted: stale values"},
    {"READONLY",
     "+readonly",
     {"READONLY"},
     FOR_REPLICAS,
     PROBLEM_WARNING,
     "replicas are not read from"},
    {"INFO",
     "+info",
     {"INFO", "server"},
     FOR_ALL,
     PROBLEM_WARNING,
     "the guard does not see that the cache was started anew or is another server (run_id): it "
     "deletes the guarded keys at every new connection, and believes what is cached meanwhile; "
     "nor can version, memory and replicas be looked at here"},
    {"ROLE",
     "+role",
     {"ROLE"},
     FOR_ALL,
     PROBLEM_WARNING,
     "that the cache has become a replica is seen late, by a write that it refuses"},
    {"CLIENT ID",
     "+client|id",
     {"CLIENT", "ID"},
     FOR_ALL,
     PROBLEM_WARNING,
     "after a lost connection all guarded keys are deleted, for what was sent over it may still "
     "be run"},
    {"CLIENT KILL",
     "+client|kill",
     {"CLIENT", "KILL", "ID", "0"},
     FOR_ALL,
     PROBLEM_WARNING,
     "after a lost connection all guarded keys are deleted, for what was sent over it may still "
     "be run"},
    {"CONFIG GET",
     "+config|get",
     {"CONFIG", "GET", "maxclients"},
     FOR_ALL,
     PROBLEM_NOTE,
     "the guard takes the cache's limits (proto-max-bulk-len, maxclients) for the usual ones"},
    {"EVAL", "+eval", {"EVAL", "return 1", "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"BITFIELD",
     "+bitfield",
     {"BITFIELD", key_word, "SET", "u1", "-1", "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"TIME", "+time", {"TIME"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"TYPE", "+type", {"TYPE", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"GET", "+get", {"GET", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"SET", "+set", {"SET", key_word, "", "PX", "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"DEL", "+del", {"DEL", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"STRLEN", "+strlen", {"STRLEN", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"GETBIT", "+getbit", {"GETBIT", key_word, "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"SETBIT",
     "+setbit",
     {"SETBIT", key_word, "-1", "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"HGET", "+hget", {"HGET", key_word, "x"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"HSET",
     "+hset",
     {"HSET", key_word, "x", "x", "x"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"HEXISTS", "+hexists", {"HEXISTS", key_word, "x"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"RENAME",
     "+rename",
     {"RENAME", key_word, key_word},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"PTTL", "+pttl", {"PTTL", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"PERSIST", "+persist", {"PERSIST", key_word}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"PEXPIREAT",
     "+pexpireat",
     {"PEXPIREAT", key_word, "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
};

enum { NEEDS = sizeof needs / sizeof needs[0] };

/* One command that is tried. */
struct attempt {
    const struct need *need;
    const struct keyspace *keyspace; /* NULL: of none */
    const char *key;                 /* NULL: of none */
    const char *words[WORDS_MAX];
    char refusal[REDIS_REFUSAL_SIZE];
};

struct rights {
    const struct config *config;
    const char *place, *user;
    enum problem_level down;
    struct problems *problems;
    struct attempt *attempts;
    size_t count;
    char db[12];
    bool told[NEEDS]; /* refused for any key */
};

static bool is_needed_once(const struct config *config, enum need_for whose)
{
    return whose == FOR_ALL || (whose == FOR_ONE_SERVER && !config->cache.is_cluster) ||
           (whose == FOR_CLUSTER && config->cache.is_cluster) ||
           (whose == FOR_REPLICAS && config->cache.is_cluster &&
            config->cache_reads == CACHE_READS_REPLICA) ||
           (whose == FOR_SWEEPS && config_has_rows(config));
}

static bool is_needed_of(const struct keyspace *keyspace, enum need_for whose)
{
    bool is_hash = keyspace->fill == FILL_HASH, loads = keyspace->on_miss == MISS_LOAD;
    if (whose == FOR_PUBLISHING)
        return keyspace->publish.key != NULL;
    if (!keyspace_has_rows(keyspace))
        return false;
    return whose == FOR_ROWS || (whose == FOR_STRING_FILLS && !is_hash && loads) ||
           (whose == FOR_HASH_FILLS && is_hash && loads) || (whose == FOR_STRINGS && !is_hash) ||
           (whose == FOR_HASHES && is_hash);
}

static void add(struct rights *rights, const struct need *need, const struct keyspace *keyspace,
                const char *key)
{
    struct attempt *attempt = &rights->attempts[rights->count++];
    *attempt = (struct attempt){.need = need, .keyspace = keyspace, .key = key};
    for (size_t i = 0; need->words[i]; i++)
        attempt->words[i] = need->words[i] == key_word  ? key
                            : need->words[i] == db_word ? rights->db
                                                        : need->words[i];
}

/* A new string: digits alone, which are a value of most columns' types and patterns, and so many
 * that no row has it. */
static char *key_of_nobody(const struct keyspace *keyspace, bool is_published)
{
    uint64_t random = 0;
    char digits[24];
    struct span columns[KEY_COLUMNS_MAX];
    struct buffer text = {0};
    if (getrandom(&random, sizeof random, 0) < 0)
        random = 0;
    snprintf(digits, sizeof digits, "9%020llu", (unsigned long long)random);
    for (size_t i = 0; i < KEY_COLUMNS_MAX; i++)
        columns[i] = span_of(digits);
    if (is_published)
        buffer_printf(&text, "%s:%s", keyspace->publish.key, digits);
    else
        key_template_render(&keyspace->key, columns, &text);
    char *key = buffer_string(&text);
    buffer_finish(&text);
    return key;
}

static void add_of_keyspace(struct rights *rights, const struct keyspace *keyspace, const char *key,
                            bool is_published)
{
    for (size_t i = 0; key && i < NEEDS; i++)
        if ((needs[i].whose == FOR_PUBLISHING) == is_published &&
            is_needed_of(keyspace, needs[i].whose))
            add(rights, &needs[i], keyspace, key);
}

/* ---- what came of it ---- */

static bool is_unknown(const char *refusal)
{
    return span_starts(span_of(refusal), "ERR unknown command") ||
           span_starts(span_of(refusal), "ERR Unknown subcommand") ||
           span_starts(span_of(refusal), "ERR unknown subcommand");
}

/* "... to access one of the keys used as arguments", "No permissions to access a key". */
static bool is_of_key(const char *refusal)
{
    return span_starts(span_of(refusal), "NOPERM ") && strstr(refusal, " access ") != NULL;
}

static enum problem_level level_of(const struct rights *rights, const struct need *need)
{
    return need->level == PROBLEM_ERROR ? rights->down : need->level;
}

static void tell_of_command(struct rights *rights, const struct attempt *attempt)
{
    const struct need *need = attempt->need;
    const struct need *first = needs; /* of this command, which several may need */
    while (strcmp(first->name, need->name) != 0)
        first++;
    if (rights->told[first - needs])
        return;
    rights->told[first - needs] = true;
    char *remedy = xasprintf("ACL SETUSER %s %s", rights->user, need->right);
    if (is_unknown(attempt->refusal))
        problems_add(rights->problems, level_of(rights, need), rights->place, NULL,
                     "it does not know %s, which the guard sends (`rename-command` in its "
                     "configuration?): %s",
                     need->name, need->lost);
    else
        problems_add(rights->problems, level_of(rights, need), rights->place, remedy,
                     "its user %s may not %s, which the guard sends: %s", rights->user, need->name,
                     need->lost);
    free(remedy);
}

/* As a pattern has them: a rule of ACLs has no spaces. */
static void append_literal(struct buffer *out, struct span literal)
{
    for (size_t i = 0; i < literal.length; i++) {
        if (strchr("*?[]\\", literal.at[i]))
            buffer_append(out, "\\", 1);
        buffer_append(out, literal.at[i] == ' ' ? "?" : &literal.at[i], 1);
    }
}

static void append_pattern(struct buffer *out, const struct attempt *attempt)
{
    const struct key_template *key = &attempt->keyspace->key;
    buffer_append(out, "~", 1);
    if (attempt->need->whose == FOR_PUBLISHING)
        append_literal(out, span_of(attempt->keyspace->publish.key));
    else
        for (size_t i = 0; i < key->columns; i++) {
            append_literal(out, key->literal[i]);
            if (i + 1 < key->columns)
                buffer_append(out, "*", 1);
        }
    buffer_append(out, "*", 1);
    if (attempt->need->whose != FOR_PUBLISHING)
        append_literal(out, key->literal[key->columns]);
}

/* The attempts with one key stand behind each other: the first that is refused tells of all. */
static void tell_of_key(struct rights *rights, const struct attempt *first)
{
    const struct attempt *end = rights->attempts + rights->count;
    enum problem_level level = PROBLEM_NOTE;
    struct buffer names = {0}, remedy = {0};
    for (const struct attempt *at = first; at < end && at->key == first->key; at++)
        if (is_of_key(at->refusal)) {
            buffer_printf(&names, "%s%s", at == first ? "" : ", ", at->need->name);
            if (level_of(rights, at->need) > level)
                level = level_of(rights, at->need);
        }
    buffer_printf(&remedy, "ACL SETUSER %s ", rights->user);
    append_pattern(&remedy, first);
    char *refused = buffer_string(&names), *line = buffer_string(&remedy);
    problems_add(rights->problems, level, rights->place, line,
                 "its user %s may not %s keys such as %s, of keyspace %s: %s", rights->user,
                 refused, first->key, first->keyspace->name, first->need->lost);
    free(refused);
    free(line);
    buffer_finish(&names);
    buffer_finish(&remedy);
}

static void tell(struct rights *rights)
{
    const char *told = NULL;
    for (size_t i = 0; i < rights->count; i++) {
        const struct attempt *attempt = &rights->attempts[i];
        if (is_of_key(attempt->refusal) && attempt->key != told) {
            tell_of_key(rights, attempt);
            told = attempt->key;
        } else if (!is_of_key(attempt->refusal) &&
                   (span_starts(span_of(attempt->refusal), "NOPERM ") ||
                    is_unknown(attempt->refusal))) {
            tell_of_command(rights, attempt);
        }
    }
}

static void try_all(struct rights *rights, const struct redis_options *options)
{
    char error[256];
    struct redis_trial *trials = xcalloc(rights->count + 1, sizeof *trials);
    for (size_t i = 0; i < rights->count; i++) {
        struct attempt *attempt = &rights->attempts[i];
        size_t count = 0;
        while (attempt->need->words[count])
            count++;
        trials[i] = (struct redis_trial){attempt->words, count, attempt->refusal};
    }
    if (redis_try(options, trials, rights->count, error) < 0)
        problems_add(rights->problems, PROBLEM_NOTE, rights->place, NULL,
                     "what its user may do could not be tried: %s", error);
    else
        tell(rights);
    free(trials);
}

void check_rights(const struct config *config, const struct redis_options *options,
                  const char *place, enum problem_level down, struct problems *problems)
{
    size_t keys = 2 * config->keyspace_count;
    char **key = xcalloc(keys + 1, sizeof *key);
    struct rights rights = {.config = config,
                            .place = place,
                            .user = options->user ? options->user : "default",
                            .down = down,
                            .problems = problems,
                            .attempts = xcalloc((keys + 1) * NEEDS, sizeof *rights.attempts)};
    snprintf(rights.db, sizeof rights.db, "%d", options->db);
    for (size_t i = 0; i < NEEDS; i++)
        if (is_needed_once(config, needs[i].whose))
            add(&rights, &needs[i], NULL, NULL);
    for (size_t i = 0; i < keys; i++) {
        const struct keyspace *keyspace = &config->keyspaces[i / 2];
        if (i % 2 ? keyspace->publish.key != NULL : keyspace->key.columns > 0)
            key[i] = key_of_nobody(keyspace, i % 2);
        add_of_keyspace(&rights, keyspace, key[i], i % 2);
    }
    try_all(&rights, options);
    for (size_t i = 0; i < keys; i++)
        free(key[i]);
    free(key);
    free(rights.attempts);
}
