#include "allocate.h"
#include "redis.h"

#include <errno.h>
#include <hiredis.h>
#include <stdarg.h>
#include <time.h>

/* One probe: every step waits for what is left of the time. */
struct probe {
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
static struct timeval time_left(const struct probe *probe)
{
    uint64_t now = now_ms(), left = probe->deadline > now ? probe->deadline - now : 1;
    return (struct timeval){.tv_sec = (time_t)(left / 1000),
                            .tv_usec = (suseconds_t)(left % 1000 * 1000)};
}

/* What hiredis has to say of a connection that failed in `step`. */
static int broken(const struct probe *probe, const char *step)
{
    bool late = now_ms() >= probe->deadline;
    snprintf(probe->error, 256, "%s: %s", step, late ? "timed out" : probe->context->errstr);
    return late ? -ETIMEDOUT : -ECONNREFUSED;
}

/* Sends one command; 0 with a reply that is not an error, which the caller frees. */
static int ask(const struct probe *probe, redisReply **reply, const char *step, const char *format,
               ...)
{
    va_list arguments;
    if (redisSetTimeout(probe->context, time_left(probe)) != REDIS_OK)
        return broken(probe, step);
    va_start(arguments, format);
    *reply = redisvCommand(probe->context, format, arguments);
    va_end(arguments);
    if (!*reply)
        return broken(probe, step);
    if ((*reply)->type != REDIS_REPLY_ERROR)
        return 0;
    snprintf(probe->error, 256, "%s refused: %s", step, (*reply)->str);
    freeReplyObject(*reply);
    *reply = NULL;
    return -EACCES;
}

static int authenticate(const struct probe *probe, const struct redis_options *options)
{
    redisReply *reply = NULL;
    int rc = 0;
    if (options->password && options->user)
        rc = ask(probe, &reply, "AUTH", "AUTH %s %s", options->user, options->password);
    else if (options->password)
        rc = ask(probe, &reply, "AUTH", "AUTH %s", options->password);
    freeReplyObject(reply);
    return rc;
}

static int select_db(const struct probe *probe, int db)
{
    redisReply *reply = NULL;
    int rc = db != 0 ? ask(probe, &reply, "SELECT", "SELECT %d", db) : 0;
    freeReplyObject(reply);
    return rc;
}

static int read_version(const struct probe *probe, char version[64])
{
    static const char field[] = "redis_version:";
    redisReply *reply = NULL;
    int rc = ask(probe, &reply, "INFO", "INFO server");
    if (rc < 0)
        return rc;
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, field) : NULL;
    if (at) {
        at += strlen(field);
        snprintf(version, 64, "%.*s", (int)strcspn(at, "\r\n"), at);
    } else {
        snprintf(probe->error, 256, "INFO: the answer names no redis_version");
        rc = -EPROTO;
    }
    freeReplyObject(reply);
    return rc;
}

int redis_probe(const struct redis_options *options, char version[64], char error[256])
{
    struct probe probe = {.deadline = now_ms() + options->timeout_ms, .error = error};
    struct timeval left = time_left(&probe);
    version[0] = error[0] = '\0';
    probe.context =
        allocated(options->path ? redisConnectUnixWithTimeout(options->path, left)
                                : redisConnectWithTimeout(options->host, options->port, left));
    int rc = probe.context->err ? broken(&probe, "cannot connect") : 0;
    if (rc == 0)
        rc = authenticate(&probe, options);
    if (rc == 0)
        rc = select_db(&probe, options->db);
    if (rc == 0)
        rc = read_version(&probe, version);
    redisFree(probe.context);
    return rc;
}
