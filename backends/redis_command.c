/* Commands are encoded when they are made: key and value need not outlive the call, and one that
 * waits for the connection is no more than bytes.
 */
#include "redis_command.h"
#include "allocate.h"

#include <hiredis.h>

enum { ARGUMENTS_MAX = 6 }; /* SET key value PX ttl NX */

struct arguments {
    int count;
    const char *at[ARGUMENTS_MAX];
    size_t length[ARGUMENTS_MAX];
};

static void add(struct arguments *arguments, struct redis_bytes bytes)
{
    arguments->at[arguments->count] = bytes.at;
    arguments->length[arguments->count++] = bytes.length;
}

static void add_text(struct arguments *arguments, const char *text)
{
    add(arguments, (struct redis_bytes){text, strlen(text)});
}

static struct redis_command *create(struct arguments *arguments)
{
    struct redis_command *command = allocate(1, sizeof *command);
    int length =
        redisFormatCommandArgv(&command->wire, arguments->count, arguments->at, arguments->length);
    allocated(length < 0 ? NULL : command->wire);
    command->wire_length = (size_t)length;
    return command;
}

static struct redis_command *create_for_key(const char *name, struct redis_bytes key)
{
    struct arguments arguments = {0};
    add_text(&arguments, name);
    add(&arguments, key);
    return create(&arguments);
}

struct redis_command *redis_command_fill(struct redis_bytes key, struct redis_bytes value,
                                         uint64_t ttl_ms)
{
    char ttl[24]; /* 2^64 has 20 digits */
    struct arguments arguments = {0};
    snprintf(ttl, sizeof ttl, "%llu", (unsigned long long)ttl_ms);
    add_text(&arguments, "SET");
    add(&arguments, key);
    add(&arguments, value);
    if (ttl_ms > 0) {
        add_text(&arguments, "PX");
        add_text(&arguments, ttl);
    }
    add_text(&arguments, "NX");
    return create(&arguments);
}

struct redis_command *redis_command_purge(struct redis_bytes key)
{
    return create_for_key("DEL", key);
}

struct redis_command *redis_command_exists(struct redis_bytes key)
{
    return create_for_key("EXISTS", key);
}

void redis_command_sent(struct redis_command *command)
{
    free(command->wire);
    command->wire = NULL;
}

/* The few kinds of replies that SET NX, DEL and EXISTS have: a status or nil, an integer, an
 * error. */
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
