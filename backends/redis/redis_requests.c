/* The guard's own commands, and what is known of their server. A command is bytes from the moment
 * when it is asked for, so that key and value need not outlive the call; what comes of it is
 * redis_submit()'s. What is told of the server was found by the connection: nothing is asked for
 * it.
 */
#include "redis/redis_internal.h"

#include "redis/redis_fleet.h"

#include <stdio.h>
#include <string.h>

/* The one that has the key. Of a cluster of which nobody knows that, whoever stands for it, where
 * every command fails. */
static struct redis *node_of(struct redis *redis, struct redis_bytes key)
{
    struct redis *owner = redis->fleet ? redis_fleet_owner(redis->fleet, key) : NULL;
    return owner ? owner : redis;
}

/* A key that is on the move, or has moved, is not cached: it is loaded anew. */
void redis_fill(struct redis *redis, struct redis_bytes key, struct redis_bytes value,
                uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    redis_submit(node_of(redis, key), redis_command_fill(key, value, ttl_ms), done, arg);
}

void redis_fill_hash(struct redis *redis, struct redis_bytes key, struct redis_hash hash,
                     uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    redis_submit(node_of(redis, key), redis_command_fill_hash(key, hash, ttl_ms), done, arg);
}

void redis_purge(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    if (redis->fleet)
        redis_fleet_purge(redis->fleet, key, done, arg);
    else
        redis_submit(redis, redis_command_purge(key), done, arg);
}

void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg)
{
    if (redis->fleet)
        redis_fleet_purge(redis->fleet, keys[0], done, arg);
    else
        redis_submit(redis, redis_command_purge_many(keys, count), done, arg);
}

void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_scan(cursor, pattern, count), done, arg);
}

void redis_exists(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    if (redis->fleet)
        redis_fleet_exists(redis->fleet, key, done, arg);
    else
        redis_submit(redis, redis_command_exists(key), done, arg);
}

void redis_send(struct redis *redis, const struct redis_bytes *words, size_t count,
                redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_any(words, count), done, arg);
}

bool redis_is_cluster(const struct redis *redis)
{
    return redis->fleet != NULL;
}

unsigned redis_left_out(const struct redis *redis)
{
    return redis->fleet ? redis_fleet_left_out(redis->fleet) : 0;
}

int redis_number_of(const struct redis *redis, struct redis_bytes key)
{
    int number = 0;
    const struct redis *owner = redis->fleet ? redis_fleet_owner(redis->fleet, key) : redis;
    if (!redis->fleet || !owner)
        return owner ? 0 : -1;
    while (redis_fleet_next(redis->fleet, &number) != owner)
        number++;
    return number;
}

static bool fleet_is_up(const struct redis_fleet *fleet)
{
    const struct redis *node;
    int number = 0, count = 0;
    for (; (node = redis_fleet_next(fleet, &number)); number++, count++)
        if (!redis_is_up(node))
            return false;
    return count > 0;
}

bool redis_is_up(const struct redis *redis)
{
    if (redis->fleet)
        return fleet_is_up(redis->fleet);
    return redis->state == LINK_UP;
}

static bool fleet_is_settled(const struct redis_fleet *fleet)
{
    const struct redis *node;
    int number = 0;
    for (; (node = redis_fleet_next(fleet, &number)); number++)
        if (!redis_is_settled(node))
            return false;
    return true;
}

bool redis_is_settled(const struct redis *redis)
{
    if (redis->fleet)
        return fleet_is_settled(redis->fleet);
    return !redis->sent.first && !redis->waiting.first && !redis->greeting.left;
}

struct redis *redis_next_node(const struct redis *redis, int *number)
{
    return redis->fleet ? redis_fleet_next(redis->fleet, number) : NULL;
}

static void describe_sentinel(const struct redis *redis, size_t number, struct redis_node *node)
{
    struct redis_word word;
    redis_topology_word(redis->topology, number, &word);
    *node =
        (struct redis_node){.up = word.primary != NULL, .role = REDIS_SENTINEL, .why = word.why};
    if (!node->up)
        node->down_ms = uv_now(redis->loop) - word.since;
    redis_place_print(&word.sentinel, node->address);
}

/* While no node is known, there is one that is down, and why. */
static size_t fleet_count(const struct redis_fleet *fleet)
{
    size_t count = 0;
    for (int number = 0; redis_fleet_next(fleet, &number); number++)
        count++;
    return count ? count : 1;
}

/* Nobody is known: since when there was nobody to ask. */
static void describe_nobody(const struct redis *redis, struct redis_node *node)
{
    *node = (struct redis_node){.why = redis_fleet_why(redis->fleet),
                                .down_ms = uv_now(redis->loop) - redis->down_since};
}

static void describe_of_fleet(const struct redis *redis, size_t at, struct redis_node *node)
{
    const struct redis_fleet *fleet = redis->fleet;
    int number = 0;
    const struct redis *server = redis_fleet_next(fleet, &number);
    for (; server && at; at--) {
        number++;
        server = redis_fleet_next(fleet, &number);
    }
    if (server)
        redis_describe(server, 0, node);
    else
        describe_nobody(redis, node);
}

size_t redis_node_count(const struct redis *redis)
{
    if (redis->fleet)
        return fleet_count(redis->fleet);
    return 1 + (redis->topology ? redis_topology_sentinels(redis->topology) : 0);
}

/* Where it is by the configuration; with sentinels, where the last connection was led, which may be
 * nowhere yet. */
static void print_address(const struct redis *redis, struct redis_node *node)
{
    const struct redis_options *options = &redis->options;
    struct redis_place place = redis->dial.place;
    node->address[0] = '\0';
    if (options->path && !redis->topology)
        snprintf(node->address, sizeof node->address, "unix:%s", options->path);
    if (options->host && !redis->topology) {
        snprintf(place.host, sizeof place.host, "%s", options->host);
        place.port = options->port;
    }
    if (place.host[0])
        redis_place_print(&place, node->address);
}

void redis_describe(const struct redis *redis, size_t number, struct redis_node *node)
{
    if (redis->fleet) {
        describe_of_fleet(redis, number, node);
        return;
    }
    if (number > 0) {
        describe_sentinel(redis, number - 1, node);
        return;
    }
    node->up = redis_is_up(redis);
    node->role = redis->greeting.role;
    node->why = node->up ? redis->trouble : redis->reason;
    node->down_ms = node->up ? 0 : uv_now(redis->loop) - redis->down_since;
    if (!node->why[0])
        node->why = NULL;
    print_address(redis, node);
}

/* A node's data are where the node is, whatever slots it has by now. */
static const char *differs_from_nodes(const struct redis_fleet *fleet, const struct redis *other)
{
    const char *why = "it has a node that the one before has not";
    const struct redis *node;
    int number = 0;
    for (; why && (node = redis_fleet_next(fleet, &number)); number++)
        why = redis_differ(node, other);
    return why;
}

static const char *fleets_differ(const struct redis_fleet *one, const struct redis_fleet *other)
{
    const char *why = NULL;
    const struct redis *node;
    int number = 0;
    for (; !why && (node = redis_fleet_next(other, &number)); number++)
        why = differs_from_nodes(one, node);
    return why;
}

const char *redis_differ(const struct redis *one, const struct redis *other)
{
    if (!redis_is_up(one) || !redis_is_up(other))
        return "one of the two cannot be asked";
    if (!one->fleet != !other->fleet)
        return "one of the two is a cluster";
    if (one->fleet)
        return fleets_differ(one->fleet, other->fleet);
    if (one->options.db != other->options.db)
        return "it is another database";
    return redis_identity_doubt(&one->greeting.own, &other->greeting.own);
}

const char *redis_run_id(const struct redis *redis)
{
    return redis->greeting.last.run_id;
}

const char *redis_doubt(const struct redis *redis)
{
    return redis->greeting.doubt;
}
