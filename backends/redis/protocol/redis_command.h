/* A command on its way to the cache, and lists of them. Private to backends/.
 *
 *   redis_command_*() ──▶ waiting ──▶ sent ──▶ redis_command_deliver(), with the reply or without
 */
#ifndef NESTGUARD_REDIS_COMMAND_H
#define NESTGUARD_REDIS_COMMAND_H

#include "redis/protocol/redis_answer.h"
#include <stdint.h>

struct redisReply;

struct redis_command {
    struct redis_command *next;
    redis_answer_cb done;
    void *arg;
    bool writes;       /* needs memory: what a full server refuses */
    uint64_t deadline; /* on the loop's clock: until when the reply must be there */
    char *wire;        /* until it is sent */
    size_t wire_length;
};

/* A queue; zeroed it is empty. */
struct redis_commands {
    struct redis_command *first, *last;
};

/* Commands that are not on their way yet, with copies of the bytes; `done` and `arg` are the
 * caller's to set. */
struct redis_command *redis_command_fill(struct redis_bytes key, struct redis_bytes value,
                                         uint64_t ttl_ms);
struct redis_command *redis_command_fill_hash(struct redis_bytes key, struct redis_hash hash,
                                              uint64_t ttl_ms);
struct redis_command *redis_command_purge(struct redis_bytes key);
struct redis_command *redis_command_purge_many(const struct redis_bytes *keys, size_t count);
struct redis_command *redis_command_scan(const char *cursor, struct redis_bytes pattern,
                                         unsigned count);
struct redis_command *redis_command_exists(struct redis_bytes key);
struct redis_command *redis_command_any(const struct redis_bytes *words, size_t count);
struct redis_command *redis_command_of(const char *const *words, size_t count); /* at most six */

/* The bytes, which are the caller's to free from now on. */
char *redis_command_take_wire(struct redis_command *command);

/* Calls the callback and frees the command. Without a reply it is REDIS_DOWN, because of `reason`.
 */
void redis_command_deliver(struct redis_command *command, const struct redisReply *reply,
                           const char *reason);

void redis_commands_append(struct redis_commands *commands, struct redis_command *command);
struct redis_command *redis_commands_take(struct redis_commands *commands); /* the first, or NULL */

#endif
