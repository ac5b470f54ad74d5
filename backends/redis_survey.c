#include "redis_survey.h"

#include <errno.h>
#include <hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

/* The value of a "name:value" line, which ends at CR or LF; NULL when there is none. */
static const char *field(const char *text, const char *name)
{
    size_t length = strlen(name);
    while (text && *text) {
        if (strncmp(text, name, length) == 0 && text[length] == ':')
            return text + length + 1;
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return NULL;
}

static bool field_is(const char *text, const char *name, const char *value)
{
    const char *found = field(text, name);
    size_t length = strlen(value);
    return found && strncmp(found, value, length) == 0 && strchr("\r\n", found[length]);
}

void redis_survey_read(struct redis_survey *out, const char *text)
{
    const char *memory = field(text, "maxmemory"), *policy = field(text, "maxmemory_policy");
    *out = (struct redis_survey){
        .max_memory = memory ? strtoull(memory, NULL, 10) : 0,
        .is_replica = field_is(text, "role", "slave") || field_is(text, "role", "replica"),
        .is_cluster_node = field_is(text, "cluster_enabled", "1"),
    };
    if (policy)
        snprintf(out->memory_policy, sizeof out->memory_policy, "%.*s",
                 (int)strcspn(policy, "\r\n"), policy);
}

static redisContext *connect_to(const struct redis_options *options)
{
    struct timeval patience = {(time_t)(options->timeout_ms / 1000),
                               (suseconds_t)(options->timeout_ms % 1000) * 1000};
    redisContext *redis = options->path
                              ? redisConnectUnixWithTimeout(options->path, patience)
                              : redisConnectWithTimeout(options->host, options->port, patience);
    if (redis && !redis->err)
        redisSetTimeout(redis, patience);
    return redis;
}

static bool is_allowed(redisContext *redis, const struct redis_options *options)
{
    redisReply *reply = NULL;
    if (!options->password)
        return true;
    if (options->user)
        reply = redisCommand(redis, "AUTH %s %s", options->user, options->password);
    else
        reply = redisCommand(redis, "AUTH %s", options->password);
    bool allowed = reply && reply->type == REDIS_REPLY_STATUS;
    if (reply)
        freeReplyObject(reply);
    return allowed;
}

static int ask(redisContext *redis, struct redis_survey *out)
{
    int status = -EPROTO;
    redisReply *reply = redisCommand(redis, "INFO");
    if (reply && reply->type == REDIS_REPLY_STRING) {
        redis_survey_read(out, reply->str);
        status = 0;
    }
    if (reply)
        freeReplyObject(reply);
    return status;
}

int redis_survey(const struct redis_options *options, struct redis_survey *out)
{
    int status = -ECONNREFUSED;
    redisContext *redis = connect_to(options);
    if (redis && !redis->err)
        status = is_allowed(redis, options) ? ask(redis, out) : -EPROTO;
    if (redis)
        redisFree(redis);
    return status;
}
