/* One conversation with the cache (redis_survey.h), and what its answers mean for who fills it and
 * purges from it.
 */
#include "check/check_cache.h"

#include "base/memory.h"
#include "cache/cache_target.h"
#include "check/check_cache_hint.h"
#include "check/check_rights.h"
#include "check/check_versions.h"
#include "redis/redis_survey.h"
#include "redis/topology/redis_locate.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_MAJOR = 4, PATIENCE_MS = 3000 }; /* for one conversation, from its connecting on */

/* One server, while it is asked. */
struct cache {
    const char *place; /* how findings call it */
    struct redis_options options;
    struct problems *problems;
    bool is_node;                    /* of a cluster */
    struct check_versions *versions; /* of its nodes; else NULL */
};

/* A new string: "cache 127.0.0.1:6379". Not the URL, in which there may be a password. */
static char *cache_place(const struct address *address)
{
    if (address->path)
        return xasprintf("cache unix:%s", address->path);
    return xasprintf(strchr(address->host, ':') ? "cache [%s]:%u" : "cache %s:%u", address->host,
                     address->port);
}

static struct redis_options options_of(const struct config *config, const struct address *address)
{
    const struct cache_url *url = &config->cache;
    return (struct redis_options){
        .host = address->host,
        .port = address->port,
        .path = address->path,
        .user = url->user,
        .password = url->password,
        .db = url->db,
        .tls = config->cache_tls,
        .timeout_ms = PATIENCE_MS,
    };
}

/* Somebody answered, and will answer the same tomorrow. A Redis that is full or still reads its
 * file will let us in later. */
static bool is_refusal(int status, const char *error)
{
    return (status == -EACCES || status == -EPROTO) && !strstr(error, "LOADING") &&
           !strstr(error, "max number of clients");
}

static void report_failure(const struct cache *cache, const struct config *config,
                           enum problem_level down, int status, const char *error)
{
    const char *hint = check_cache_hint(config, cache->options.tls != NULL, error);
    enum problem_level level = is_refusal(status, error) ? PROBLEM_ERROR : down;
    if (hint)
        problems_add(cache->problems, level, cache->place, NULL, "%s: %s; %s",
                     status == -EACCES   ? "it does not let us in"
                     : status == -EPROTO ? "it is no Redis, or none without TLS"
                                         : "no connection",
                     error, hint);
    else if (is_refusal(status, error))
        problems_add(cache->problems, PROBLEM_ERROR, cache->place, NULL, "%s: %s",
                     strstr(error, "SELECT refused")
                         ? "it does not have the database that `cache` names, or gives it to nobody"
                         : "it is no Redis, or does not let us in",
                     error);
    else
        problems_add(cache->problems, down, cache->place, NULL,
                     "no connection: %s; is Redis running there, and is this the address that it "
                     "listens on (its `bind` and `port`)?",
                     error);
}

static void note_version(const struct cache *cache, const char *version)
{
    if (cache->versions)
        check_versions_add(cache->versions, version, strchr(cache->place, ' ') + 1);
}

static void check_version(const struct cache *cache, const char *version)
{
    if (version[0] && strtol(version, NULL, 10) < OLDEST_MAJOR)
        problems_add(cache->problems, PROBLEM_ERROR, cache->place, NULL,
                     "Redis %s is too old: %d.0 or newer is needed", version, OLDEST_MAJOR);
}

/* Without a bound nothing is evicted, and the policy says nothing. */
static void check_memory(const struct cache *cache, const struct redis_survey *survey)
{
    if (survey->max_memory && strcmp(survey->memory_policy, "noeviction") == 0)
        problems_add(cache->problems, PROBLEM_WARNING, cache->place,
                     "CONFIG SET maxmemory-policy allkeys-lru",
                     "maxmemory-policy is noeviction: when its memory is full it takes no more "
                     "values, and every lookup of others goes to the database");
}

/* Kept to by the guard; told where they are lower than what the file says. */
static void check_limits(const struct cache *cache, const struct config *config,
                         const struct redis_survey *survey)
{
    uint64_t wanted = (uint64_t)config->workers *
                      (config->limits.own_connections + 2 * (uint64_t)config->cache_connections);
    if (survey->max_bulk && survey->max_bulk < config->max_bulk)
        problems_add(cache->problems, PROBLEM_WARNING, cache->place, NULL,
                     "proto-max-bulk-len is %llu: the guard refuses larger arguments, too, "
                     "although max_bulk is %zu",
                     (unsigned long long)survey->max_bulk, config->max_bulk);
    if (survey->max_clients && survey->max_clients < wanted)
        problems_add(cache->problems, PROBLEM_NOTE, cache->place, NULL,
                     "maxclients is %llu, and own_connections of all workers may be more: the "
                     "guard keeps to fewer, and leaves a tenth to others",
                     (unsigned long long)survey->max_clients);
}

/* A connection that many clients share is in the place of as many: what the cache would hang up on
 * one greedy client for, they all would suffer. */
static void check_hanging_up(const struct cache *cache, const struct redis_survey *survey)
{
    const char *user = cache->options.user ? cache->options.user : "default";
    if (survey->limits_output)
        problems_add(
            cache->problems, PROBLEM_WARNING, cache->place,
            "CONFIG SET client-output-buffer-limit \"normal 0 0 0\"",
            "client-output-buffer-limit is set for normal clients: the cache hangs up on a "
            "connection of the guard with so many bytes of replies under way, and on all "
            "who share it");
    if (!survey->evicts_clients || survey->may_stay)
        return;
    char *remedy = xasprintf("ACL SETUSER %s +client|no-evict", user);
    problems_add(cache->problems, PROBLEM_WARNING, cache->place, remedy,
                 "maxmemory-clients is set, and its user %s may not CLIENT NO-EVICT: when clients "
                 "take more memory, the cache hangs up on connections of the guard, and on all who "
                 "share them",
                 user);
    free(remedy);
}

/* Before it serves, a guard only says so: a replica may be made a primary. */
static void check_role(const struct cache *cache, enum problem_level down,
                       const struct redis_survey *survey)
{
    if (survey->is_cluster_node && !cache->is_node)
        problems_add(cache->problems, PROBLEM_ERROR, cache->place, NULL,
                     "it is a node of a cluster, which sends clients on to others: `cache` must be "
                     "redis-cluster://, or name a server that has all keys");
    if (!survey->is_cluster_node && cache->is_node && survey->version[0])
        problems_add(cache->problems, PROBLEM_ERROR, cache->place, NULL,
                     "it is no node of a cluster: `cache` must be redis://");
    if (survey->wants_all_slots && cache->is_node)
        problems_add(cache->problems, PROBLEM_NOTE, cache->place, NULL,
                     "cluster-require-full-coverage is yes: while one slot has no node, the others "
                     "answer nothing either, and every lookup goes to the database");
    if (survey->role == REDIS_REPLICA)
        problems_add(
            cache->problems, down, cache->place, NULL,
            "it is a replica: nothing can be filled or purged there; `cache` must name its "
            "primary");
    if (survey->role == REDIS_SENTINEL)
        problems_add(cache->problems, down, cache->place, NULL,
                     "it is a sentinel, which holds no keys; `cache` must name the primary that it "
                     "watches");
}

/* Nobody may mean what the guard is about to write over; and it writes by scripts. */
static const char published_script[] =
    "local kind = redis.call('TYPE', KEYS[1]).ok "
    "local info = redis.call('TYPE', KEYS[2]).ok "
    "if kind == 'none' and info == 'none' then return 'none' end "
    "if info == 'hash' and redis.call('HEXISTS', KEYS[2], 'owner') == 1 then return 'published' "
    "end "
    "return kind == 'none' and info or kind";

/* Another node of the cluster has the slot, and is asked, too. */
static bool is_elsewhere(const struct cache *cache, const char *error)
{
    return cache->is_node && strstr(error, "refused: MOVED ") != NULL;
}

static void check_published(const struct cache *cache, const struct keyspace *keyspace)
{
    char error[256], said[64];
    char *bitmap = xasprintf("%s%s", keyspace->publish.key, keyspace->publish.grow ? "-0" : "");
    char *info = xasprintf("%s:info", keyspace->publish.key);
    int status = redis_ask_script(&cache->options, published_script,
                                  (const char *const[]){bitmap, info}, said, error);
    if (status && !is_elsewhere(cache, error))
        problems_add(cache->problems, PROBLEM_ERROR, cache->place, NULL,
                     "publish of keyspace %s needs scripts: %s", keyspace->name, error);
    else if (!status && strcmp(said, "none") != 0 && strcmp(said, "published") != 0)
        problems_add(
            cache->problems, PROBLEM_WARNING, cache->place, NULL,
            "publish of keyspace %s: \"%s\" is there already (a %s) and no guard wrote it; "
            "a string would be written over, anything else keeps the guard from publishing",
            keyspace->name, bitmap, said);
    free(bitmap);
    free(info);
}

static void check_all_published(const struct cache *cache, const struct config *config)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (config->keyspaces[i].publish.key)
            check_published(cache, &config->keyspaces[i]);
}

/* ---- sentinels ---- */

struct hearing {
    struct problems *problems;
    struct redis_place first; /* that one of them names; host "": none as yet */
};

/* One sentinel's word. That one of them does not know, or knows another primary, does not keep the
 * others from being believed: a warning. */
static void on_word(void *arg, const struct redis_word *word)
{
    struct hearing *hearing = arg;
    char sentinel[REDIS_PLACE_TEXT], text[REDIS_PLACE_TEXT + 20];
    redis_place_print(&word->sentinel, sentinel);
    snprintf(text, sizeof text, "sentinel %s", sentinel);
    if (!word->primary)
        problems_add(hearing->problems, PROBLEM_WARNING, text, NULL, "%s", word->why);
    else if (!hearing->first.host[0])
        hearing->first = *word->primary;
    else if (!redis_place_equal(&hearing->first, word->primary))
        problems_add(hearing->problems, PROBLEM_WARNING, text, NULL,
                     "it names another primary than the one before it: they do not agree, or a "
                     "failover is under way");
    if (word->is_deaf)
        problems_add(hearing->problems, PROBLEM_NOTE, text, NULL,
                     "it does not let us SUBSCRIBE to +switch-master: of a failover it tells up to "
                     "a second later, when it is asked");
}

/* False: none of them names a primary. */
static bool locate(const struct config *config, enum problem_level down, struct problems *problems,
                   struct redis_place *found)
{
    char error[256] = "";
    struct hearing hearing = {.problems = problems};
    struct cache_sentinels sentinels;
    int status = redis_locate(cache_sentinels(&sentinels, config), found, error, on_word, &hearing);
    if (status < 0)
        problems_add(problems, down, "cache", NULL, "%s", error);
    return status == 0;
}

/* ---- replicas ---- */

static void try_rights(const struct cache *cache, const struct config *config,
                       enum problem_level down, bool is_replica)
{
    const struct check_rights rights = {.config = config,
                                        .options = &cache->options,
                                        .place = cache->place,
                                        .is_replica = is_replica,
                                        .down = down,
                                        .problems = cache->problems};
    check_rights(&rights);
}

/* What keeps lookups from a replica sends them to its primary: never more than a warning. */
static void check_replica(const struct cache *primary, const struct config *config,
                          const struct redis_place *place)
{
    struct problems *problems = primary->problems;
    char error[256] = "", address[REDIS_PLACE_TEXT], text[REDIS_PLACE_TEXT + 20];
    struct address at = {.host = (char *)place->host, .port = place->port};
    struct cache cache = {text, options_of(config, &at), problems, config->cache.is_cluster,
                          primary->versions};
    struct redis_survey survey;
    redis_place_print(place, address);
    snprintf(text, sizeof text, "replica %s", address);
    if (redis_survey(&cache.options, &survey, error) < 0)
        problems_add(problems, PROBLEM_WARNING, text, NULL,
                     "it cannot be read from: %s; its primary names it by this address "
                     "(replica-announce-ip)",
                     error);
    else if (survey.role != REDIS_REPLICA)
        problems_add(problems, PROBLEM_WARNING, text, NULL,
                     "it is not read from: it is no replica, although a primary names it");
    else if (survey.version[0] && !survey.standing.is_linked)
        problems_add(problems, PROBLEM_WARNING, text, NULL,
                     "it is not read from: its link to its primary is down, or it is being copied "
                     "to");
    else {
        check_hanging_up(&cache, &survey);
        try_rights(&cache, config, PROBLEM_WARNING, true);
    }
    note_version(&cache, survey.version);
}

/* Of the primary that was asked. Of one server none are wanted, and the file's mistake is told. */
static void check_replicas(const struct cache *cache, const struct config *config,
                           const struct redis_survey *survey)
{
    size_t near = 0;
    bool is_fleet = config->cache.is_cluster || config->cache.primary;
    if (config->cache_reads != CACHE_READS_REPLICA || survey->role == REDIS_REPLICA || !is_fleet)
        return;
    for (size_t i = 0; i < survey->replica_count; i++)
        if (config_is_in_zone(config, survey->replicas[i].host)) {
            near++;
            check_replica(cache, config, &survey->replicas[i]);
        }
    if (!near && survey->version[0])
        problems_add(cache->problems, PROBLEM_WARNING, cache->place, NULL,
                     "it has no replica%s: it is read from itself, whatever cache_reads says",
                     config->cache_zone && survey->replica_count ? " in cache_zone" : "");
}

/* ---- all ---- */

/* What is written alike the file's own checks have found. True: it is, which has been told. */
static bool is_the_guard(const struct config *config, const struct address *address,
                         struct problems *problems)
{
    size_t i = 0;
    while (i < config->listens && !address_leads_to(address, &config->listen[i]))
        i++;
    if (i == config->listens)
        return false;
    char *place = cache_place(address);
    problems_add(problems, PROBLEM_ERROR, place, NULL,
                 "it is the guard's own address (listen: %s), and each command would come back to "
                 "it without end; `cache` must name the Redis behind",
                 config->listen[i].text);
    free(place);
    return true;
}

/* Sentinels, or nodes, that the file names. */
static bool seeds_are_others(const struct config *config, struct problems *problems)
{
    bool others = true;
    for (size_t i = 0; i < config->cache.seed_count; i++)
        others &= !is_the_guard(config, &config->cache.seeds[i], problems);
    return others;
}

struct walk {
    const struct config *config;
    enum problem_level down;
    struct problems *problems;
    char *version;                   /* [64], of the first server; "" as yet */
    struct check_versions *versions; /* of a cluster's nodes; else NULL */
    bool all;                        /* could be asked so far */
};

/* Whether it could be asked. */
static bool check_server(struct walk *walk, const struct address *address)
{
    char error[256] = "";
    const struct config *config = walk->config;
    struct problems *problems = walk->problems;
    if (is_the_guard(config, address, problems))
        return false;
    char *place = cache_place(address);
    struct cache cache = {place, options_of(config, address), problems, config->cache.is_cluster,
                          walk->versions};
    struct redis_survey survey;
    int status = redis_survey(&cache.options, &survey, error);
    if (status < 0) {
        report_failure(&cache, config, walk->down, status, error);
    } else {
        check_version(&cache, survey.version);
        note_version(&cache, survey.version);
        check_role(&cache, walk->down, &survey);
        check_memory(&cache, &survey);
        check_limits(&cache, config, &survey);
        check_hanging_up(&cache, &survey);
        if (survey.role != REDIS_SENTINEL)
            try_rights(&cache, config, walk->down, false);
        check_all_published(&cache, config);
        check_replicas(&cache, config, &survey);
    }
    if (!walk->version[0])
        memcpy(walk->version, survey.version, sizeof survey.version);
    free(place);
    return status == 0;
}

/* ---- a cluster ---- */

static void on_node(void *arg, const struct redis_place *place)
{
    struct walk *walk = arg;
    struct address address = {.host = (char *)place->host, .port = place->port};
    walk->all &= check_server(walk, &address);
}

static bool check_nodes(const struct config *config, enum problem_level down,
                        struct problems *problems, char version[64])
{
    struct cache_cluster_seeds seeds;
    char error[256] = "";
    unsigned uncovered;
    struct check_versions versions = {0};
    struct walk walk = {config, down, problems, version, &versions, true};
    int status =
        redis_locate_nodes(cache_cluster_seeds(&seeds, config), &uncovered, error, on_node, &walk);
    if (status < 0)
        problems_add(problems, down, "cache", NULL, "no node of the cluster tells of its slots: %s",
                     error);
    else if (uncovered)
        problems_add(problems, down, "cache", NULL,
                     "%u of the cluster's slots have no node: what is kept there cannot be cached",
                     uncovered);
    check_versions_end(&versions, problems);
    return status == 0 && walk.all;
}

/* ---- nothing but where it is ---- */

static void see_place(void *arg, const struct redis_place *place)
{
    struct walk *walk = arg;
    struct address address = {.host = (char *)place->host, .port = place->port};
    walk->all &= !is_the_guard(walk->config, &address, walk->problems);
}

bool check_cache_is_another(const struct config *config, struct problems *problems)
{
    struct problems unheard = {0};
    struct redis_place found;
    struct cache_cluster_seeds seeds;
    char error[256];
    unsigned uncovered;
    struct walk walk = {.config = config, .problems = problems, .all = true};
    if (!seeds_are_others(config, problems))
        return false;
    if (config->cache.is_cluster)
        redis_locate_nodes(cache_cluster_seeds(&seeds, config), &uncovered, error, see_place,
                           &walk);
    else if (!config->cache.primary)
        walk.all = !is_the_guard(config, &config->cache.address, problems);
    else if (locate(config, PROBLEM_WARNING, &unheard, &found))
        see_place(&walk, &found);
    problems_finish(&unheard);
    return walk.all;
}

/* ---- the whole of it ---- */

bool check_cache(const struct config *config, enum problem_level down, struct problems *problems,
                 char version[64])
{
    struct redis_place found;
    struct walk one = {.config = config, .down = down, .problems = problems, .version = version};
    version[0] = '\0';
    if (!seeds_are_others(config, problems))
        return false;
    if (config->cache.is_cluster)
        return check_nodes(config, down, problems, version);
    if (!config->cache.primary)
        return check_server(&one, &config->cache.address);
    if (!locate(config, down, problems, &found))
        return false;
    struct address address = {.host = found.host, .port = found.port};
    return check_server(&one, &address);
}
