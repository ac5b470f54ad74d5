#include "redis_command.h"
#include "allocate.h"

#include <hiredis.h>

enum { ARGUMENTS_MAX = 6 };

/* The calls, each made into a command. */

struct arguments {
    int count;
    const char *at[ARGUMENTS_MAX];
    size_t length[ARGUMENTS_MAX];
};

static void add(struct arguments *arguments, const void *bytes, size_t length)
{
    arguments->at[arguments->count] = bytes;
    arguments->length[arguments->count++] = length;
}

static void submit(struct redis *redis, struct arguments *arguments, redis_answer_cb done,
                   void *arg)
{
    struct redis_command *command = allocate(1, sizeof *command);
    int length =
        redisFormatCommandArgv(&command->wire, arguments->count, arguments->at, arguments->length);
    allocated(length < 0 ? NULL : command->wire);
    command->wire_length = (size_t)length;
    command->redis = redis;
    command->done = done;
    command->arg = arg;
    redis_submit(redis, command);
}

void redis_fill(struct redis *redis, const void *key, size_t key_length, const void *value,
                size_t value_length, uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    char ttl[24];
    int ttl_length = snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttl_ms);
    struct arguments arguments = {0};
    add(&arguments, "SET", 3);
    add(&arguments, key, key_length);
    add(&arguments, value, value_length);
    if (ttl_ms > 0) {
        add(&arguments, "PX", 2);
        add(&arguments, ttl, (size_t)ttl_length);
    }
    add(&arguments, "NX", 2);
    submit(redis, &arguments, done, arg);
}

void redis_purge(struct redis *redis, const void *key, size_t key_length, redis_answer_cb done,
                 void *arg)
{
    struct arguments arguments = {0};
    add(&arguments, "DEL", 3);
    add(&arguments, key, key_length);
    submit(redis, &arguments, done, arg);
}

void redis_exists(struct redis *redis, const void *key, size_t key_length, redis_answer_cb done,
                  void *arg)
{
    struct arguments arguments = {0};
    add(&arguments, "EXISTS", 6);
    add(&arguments, key, key_length);
    submit(redis, &arguments, done, arg);
}

/* Their end. */

void redis_command_sent(struct redis_command *command)
{
    free(command->wire);
    command->wire = NULL;
}

static struct redis_answer answer_of(const redisReply *reply)
{
    struct redis_answer answer = {.outcome = REDIS_DONE, .found = true, .error = ""};
    if (reply->type == REDIS_REPLY_ERROR) {
        answer.outcome = REDIS_REFUSED;
        answer.error = reply->str;
        answer.found = false;
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        answer.number = reply->integer;
    } else if (reply->type == REDIS_REPLY_NIL) {
        answer.found = false;
    }
    return answer;
}

void redis_command_deliver(struct redis_command *command, const struct redisReply *reply,
                           const char *reason)
{
    redis_answer_cb done = command->done;
    void *arg = command->arg;
    struct redis_answer answer = {.outcome = REDIS_DOWN, .error = reason};
    if (reply)
        answer = answer_of(reply);
    free(command->wire);
    free(command);
    if (done)
        done(arg, &answer);
}

void redis_commands_append(struct redis_commands *commands, struct redis_command *command)
{
    command->next = NULL;
    if (commands->first)
        commands->last->next = command;
    else
        commands->first = command;
    commands->last = command;
}

struct redis_command *redis_commands_take(struct redis_commands *commands)
{
    struct redis_command *command = commands->first;
    if (command)
        commands->first = command->next;
    return command;
}
