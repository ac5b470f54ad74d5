/* A command on its way to the cache, and lists of them. Private to backends/.
 *
 *   redis_command_*() ──▶ waiting ──▶ sent ──▶ redis_command_deliver(), with the reply or without
 */
#ifndef NESTGUARD_REDIS_COMMAND_H
#define NESTGUARD_REDIS_COMMAND_H

#include "redis/protocol/redis_answer.h"
#include <stdint.h>

struct redisReply;

/* What the reply to a command is, if it is no error. Anything else belongs to another: the
 * connection is out of step, and of no use. */
enum redis_form {
    REDIS_FORM_ANY, /* it is not known, or does not matter */
    REDIS_FORM_OK,
    REDIS_FORM_OK_OR_NIL,
    REDIS_FORM_PONG,
    REDIS_FORM_NUMBER,
    REDIS_FORM_TEXT,
    REDIS_FORM_LIST
};

struct redis_command {
    struct redis_command *next;
    enum redis_form form;
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
 * caller's to set, and of the last two the form. */
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

/* NULL: nothing was asked. */
bool redis_command_is_answered_by(const struct redis_command *command,
                                  const struct redisReply *reply);

/* Calls the callback and frees the command. Without a reply it is REDIS_DOWN, because of `reason`.
 */
void redis_command_deliver(struct redis_command *command, const struct redisReply *reply,
                           const char *reason);

void redis_commands_append(struct redis_commands *commands, struct redis_command *command);
struct redis_command *redis_commands_take(struct redis_commands *commands); /* the first, or NULL */

#endif
