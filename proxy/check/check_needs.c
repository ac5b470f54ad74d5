#include "check/check_needs.h"

#include <string.h>

const char need_key[] = "{key}", need_db[] = "{db}";

#define STALE "changed and deleted rows would stay in the cache until their ttl ends: stale values"
#define UNFILLED "no row would be cached, and every lookup of one goes to the database"
#define UNPUBLISHED "publish could not keep its filter"

static const char unread[] =
    "clients' lookups of rows with it are answered with the cache's refusal";

const struct need needs[] = {
    {"DEL", "+del", {"DEL", need_key}, FOR_ROWS, PROBLEM_ERROR, STALE},
    {"SET",
     "+set",
     {"SET", need_key, "", "PX", "0", "NX"},
     FOR_STRING_FILLS,
     PROBLEM_ERROR,
     UNFILLED},
    {"RESTORE",
     "+restore",
     {"RESTORE", need_key, "0", "x"},
     FOR_HASH_FILLS,
     PROBLEM_ERROR,
     UNFILLED},
    {"GET", "+get", {"GET", need_key}, FOR_STRINGS, PROBLEM_ERROR, unread},
    {"MGET", "+mget", {"MGET", need_key}, FOR_STRINGS, PROBLEM_WARNING, unread},
    {"HGET", "+hget", {"HGET", need_key, "x"}, FOR_HASHES, PROBLEM_WARNING, unread},
    {"HMGET", "+hmget", {"HMGET", need_key, "x"}, FOR_HASHES, PROBLEM_WARNING, unread},
    {"HGETALL", "+hgetall", {"HGETALL", need_key}, FOR_HASHES, PROBLEM_WARNING, unread},
    {"EXISTS", "+exists", {"EXISTS", need_key}, FOR_ROWS, PROBLEM_WARNING, unread},
    {"SCAN",
     "+scan",
     {"SCAN", "0", "COUNT", "1"},
     FOR_SWEEPS,
     PROBLEM_ERROR,
     "after a restart or failover of the cache its guarded keys could not be deleted: stale "
     "values"},
    {"SELECT",
     "+select",
     {"SELECT", need_db},
     FOR_ONE_SERVER,
     PROBLEM_ERROR,
     "no client's command would reach the cache"},
    {"CLUSTER SLOTS",
     "+cluster|slots",
     {"CLUSTER", "SLOTS"},
     FOR_CLUSTER,
     PROBLEM_ERROR,
     "the guard does not learn which node has a key"},
    {"CLUSTER INFO",
     "+cluster|info",
     {"CLUSTER", "INFO"},
     FOR_CLUSTER,
     PROBLEM_WARNING,
     "a node that is cut off from the others is believed: for keys that others have by now, errors "
     "and stale values"},
    {"CLUSTER MYID",
     "+cluster|myid",
     {"CLUSTER", "MYID"},
     FOR_CLUSTER,
     PROBLEM_WARNING,
     "a node of another cluster that has been given the address of one of this is taken for it: "
     "its values for this one's, and keys deleted there"},
    {"ASKING",
     "+asking",
     {"ASKING"},
     FOR_CLUSTER,
     PROBLEM_ERROR,
     "keys in slots that are being moved can be neither read nor deleted: stale values"},
    {"READONLY", "+readonly", {"READONLY"}, FOR_REPLICAS, PROBLEM_WARNING, ""},
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
     "the guard takes the cache's limits (proto-max-bulk-len, maxclients) for the usual ones; nor "
     "is it seen here whether there are others by which the cache hangs up on clients"},
    {"EVAL", "+eval", {"EVAL", "return 1", "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"BITFIELD",
     "+bitfield",
     {"BITFIELD", need_key, "SET", "u1", "-1", "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"TIME", "+time", {"TIME"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"TYPE", "+type", {"TYPE", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"GET", "+get", {"GET", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"SET", "+set", {"SET", need_key, "", "PX", "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"DEL", "+del", {"DEL", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"STRLEN", "+strlen", {"STRLEN", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"GETBIT", "+getbit", {"GETBIT", need_key, "0"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"SETBIT",
     "+setbit",
     {"SETBIT", need_key, "-1", "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"HGET", "+hget", {"HGET", need_key, "x"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"HSET",
     "+hset",
     {"HSET", need_key, "x", "x", "x"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"HEXISTS", "+hexists", {"HEXISTS", need_key, "x"}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"RENAME",
     "+rename",
     {"RENAME", need_key, need_key},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
    {"PTTL", "+pttl", {"PTTL", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"PERSIST", "+persist", {"PERSIST", need_key}, FOR_PUBLISHING, PROBLEM_ERROR, UNPUBLISHED},
    {"PEXPIREAT",
     "+pexpireat",
     {"PEXPIREAT", need_key, "1"},
     FOR_PUBLISHING,
     PROBLEM_ERROR,
     UNPUBLISHED},
};

const size_t needs_count = sizeof needs / sizeof needs[0];

/* A replica is connected to, asked how far it is, and read from. */
static bool is_asked(const struct need *need, bool is_replica)
{
    bool reads = need->lost == unread || strcmp(need->name, "INFO") == 0;
    if (need->whose == FOR_REPLICAS)
        return is_replica;
    return !is_replica || reads || need->whose == FOR_ONE_SERVER;
}

bool need_is_once(const struct need *need, const struct config *config, bool is_replica)
{
    bool is_cluster = config->cache.is_cluster;
    switch (need->whose) {
    case FOR_ALL:
        return is_asked(need, is_replica);
    case FOR_ONE_SERVER:
        return is_asked(need, is_replica) && !is_cluster;
    case FOR_CLUSTER:
    case FOR_REPLICAS:
        return is_asked(need, is_replica) && is_cluster;
    case FOR_SWEEPS:
        return is_asked(need, is_replica) && config_has_rows(config);
    default:
        return false;
    }
}

static bool is_of(const struct keyspace *keyspace, enum need_for whose)
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

bool need_is_of(const struct need *need, const struct keyspace *keyspace, bool is_replica)
{
    return is_asked(need, is_replica) && is_of(keyspace, need->whose);
}
