/* A conversation of a few commands, over hiredis' blocking half: connect, AUTH, SELECT, INFO. All
 * steps share one deadline, so that `check` takes no longer however many of them are slow.
 */
#include "redis_survey.h"
#include "allocate.h"

#include <errno.h>
#include <hiredis.h>
#include <stdarg.h>
#include <time.h>

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

static void copy_field(const char *text, const char *name, char *out, size_t size)
{
    const char *found = field(text, name);
    snprintf(out, size, "%.*s", found ? (int)strcspn(found, "\r\n") : 0, found ? found : "");
}

static bool field_is(const char *text, const char *name, const char *value)
{
    const char *found = field(text, name);
    size_t length = strlen(value);
    return found && strncmp(found, value, length) == 0 && strchr("\r\n", found[length]);
}

void redis_survey_read(struct redis_survey *out, const char *text)
{
    const char *memory = field(text, "maxmemory");
    *out = (struct redis_survey){
        .max_memory = memory ? strtoull(memory, NULL, 10) : 0,
        .is_replica = field_is(text, "role", "slave") || field_is(text, "role", "replica"),
        .is_cluster_node = field_is(text, "cluster_enabled", "1"),
    };
    copy_field(text, "redis_version", out->version, sizeof out->version);
    copy_field(text, "maxmemory_policy", out->memory_policy, sizeof out->memory_policy);
}

/* Every step waits for what is left of the time. */
struct talk {
    redisContext *context;
    uint64_t deadline;
    char *error; /* [256] */
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* At least a millisecond: zero would mean for ever. */
static struct timeval time_left(const struct talk *talk)
{
    uint64_t now = now_ms(), left = talk->deadline > now ? talk->deadline - now : 1;
    return (struct timeval){.tv_sec = (time_t)(left / 1000),
                            .tv_usec = (suseconds_t)(left % 1000 * 1000)};
}

/* What hiredis has to say of a connection that failed in `step`. */
static int broken(const struct talk *talk, const char *step)
{
    bool alien = talk->context->err == REDIS_ERR_PROTOCOL;
    bool late = !alien && now_ms() >= talk->deadline;
    snprintf(talk->error, 256, "%s: %s", step, late ? "timed out" : talk->context->errstr);
    return alien ? -EPROTO : late ? -ETIMEDOUT : -ECONNREFUSED;
}

/* Sends one command; 0 with a reply that is not an error, which the caller frees. */
static int ask(const struct talk *talk, redisReply **reply, const char *step, const char *format,
               ...)
{
    va_list arguments;
    if (redisSetTimeout(talk->context, time_left(talk)) != REDIS_OK)
        return broken(talk, step);
    va_start(arguments, format);
    *reply = redisvCommand(talk->context, format, arguments);
    va_end(arguments);
    if (!*reply)
        return broken(talk, step);
    if ((*reply)->type != REDIS_REPLY_ERROR)
        return 0;
    snprintf(talk->error, 256, "%s refused: %s", step, (*reply)->str);
    freeReplyObject(*reply);
    *reply = NULL;
    return -EACCES;
}

/* Without a password nothing is sent: AUTH would be an error where none is set. */
static int authenticate(const struct talk *talk, const struct redis_options *options)
{
    redisReply *reply = NULL;
    int rc = 0;
    if (options->password && options->user)
        rc = ask(talk, &reply, "AUTH", "AUTH %s %s", options->user, options->password);
    else if (options->password)
        rc = ask(talk, &reply, "AUTH", "AUTH %s", options->password);
    freeReplyObject(reply);
    return rc;
}

static int select_db(const struct talk *talk, int db)
{
    redisReply *reply = NULL;
    int rc = db != 0 ? ask(talk, &reply, "SELECT", "SELECT %d", db) : 0;
    freeReplyObject(reply);
    return rc;
}

/* What answers INFO with another text, or none, is taken for no Redis. */
static int read_fields(const struct talk *talk, struct redis_survey *out)
{
    redisReply *reply = NULL;
    int rc = ask(talk, &reply, "INFO", "INFO");
    if (rc < 0)
        return rc;
    if (reply->type == REDIS_REPLY_STRING)
        redis_survey_read(out, reply->str);
    freeReplyObject(reply);
    if (out->version[0])
        return 0;
    snprintf(talk->error, 256, "INFO: the answer names no redis_version");
    return -EPROTO;
}

int redis_survey(const struct redis_options *options, struct redis_survey *out, char error[256])
{
    struct talk talk = {.deadline = now_ms() + options->timeout_ms, .error = error};
    struct timeval left = time_left(&talk);
    *out = (struct redis_survey){0};
    error[0] = '\0';
    talk.context =
        allocated(options->path ? redisConnectUnixWithTimeout(options->path, left)
                                : redisConnectWithTimeout(options->host, options->port, left));
    int rc = talk.context->err ? broken(&talk, "cannot connect") : 0;
    if (rc == 0)
        rc = authenticate(&talk, options);
    if (rc == 0)
        rc = select_db(&talk, options->db);
    if (rc == 0)
        rc = read_fields(&talk, out);
    redisFree(talk.context);
    return rc;
}
