/* A command on its way to the cache, and lists of them. Private to backends/. */
#ifndef NESTGUARD_REDIS_COMMAND_H
#define NESTGUARD_REDIS_COMMAND_H

#include "redis.h"

struct redisReply;

struct redis_command {
    struct redis_command *next;
    struct redis *redis;
    redis_answer_cb done;
    void *arg;
    uint64_t deadline; /* on the loop's clock: until when the reply must be there */
    char *wire;        /* until it is sent */
    size_t wire_length;
};

/* A queue; zeroed it is empty. */
struct redis_commands {
    struct redis_command *first, *last;
};

/* Sends it, lets it wait, or ends it; takes it over. */
void redis_submit(struct redis *redis, struct redis_command *command);

/* The bytes are no longer needed. */
void redis_command_sent(struct redis_command *command);

/* Calls the callback and frees the command. Without a reply it is REDIS_DOWN, because of `reason`.
 */
void redis_command_deliver(struct redis_command *command, const struct redisReply *reply,
                           const char *reason);

void redis_commands_append(struct redis_commands *commands, struct redis_command *command);
struct redis_command *redis_commands_take(struct redis_commands *commands); /* the first, or NULL */

#endif
