/* The guard's own commands, and what is known of their server. */
#include "redis/redis_internal.h"

#include <stdio.h>
#include <string.h>

void redis_fill(struct redis *redis, struct redis_bytes key, struct redis_bytes value,
                uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_fill(key, value, ttl_ms), done, arg);
}

void redis_purge(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_purge(key), done, arg);
}

void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_purge_many(keys, count), done, arg);
}

void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_scan(cursor, pattern, count), done, arg);
}

void redis_exists(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_exists(key), done, arg);
}

void redis_send(struct redis *redis, const struct redis_bytes *words, size_t count,
                redis_answer_cb done, void *arg)
{
    redis_submit(redis, redis_command_any(words, count), done, arg);
}

bool redis_is_up(const struct redis *redis)
{
    return redis->state == LINK_UP;
}

void redis_describe(const struct redis *redis, struct redis_node *node)
{
    const struct redis_options *options = &redis->options;
    const char *form = options->host && strchr(options->host, ':') ? "[%s]:%u" : "%s:%u";
    node->up = redis_is_up(redis);
    node->role = redis->greeting.role;
    node->why = node->up ? redis->trouble : redis->reason;
    if (!node->why[0])
        node->why = NULL;
    if (options->path)
        snprintf(node->address, sizeof node->address, "unix:%s", options->path);
    else
        snprintf(node->address, sizeof node->address, form, options->host, (unsigned)options->port);
}

const char *redis_doubt(const struct redis *redis)
{
    return redis->greeting.doubt;
}
