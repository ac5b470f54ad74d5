/* All but the last step go out at once. hiredis calls back without a reply when the connection is
 * lost, which others are told of.
 */
#include "redis_greeting.h"

#include <stdio.h>
#include <string.h>

static void refused(struct redis_greeting *greeting, const char *step, const redisReply *reply)
{
    char error[256];
    snprintf(error, sizeof error, "%s refused: %s", step, reply->str);
    greeting->done(greeting->arg, error);
}

static void succeed(struct redis_greeting *greeting)
{
    greeting->last = greeting->own;
    greeting->done(greeting->arg, NULL);
}

static void on_killed(redisAsyncContext *context, void *answer, void *arg)
{
    (void)context;
    if (answer)
        succeed(arg);
}

/* Its number stays remembered until the server has answered: this connection may be lost as well.
 */
static void kill_last(struct redis_greeting *greeting)
{
    const struct redis_identity *last = &greeting->last, *own = &greeting->own;
    if (last->client && own->run_id[0] && strcmp(last->run_id, own->run_id) == 0)
        redisAsyncCommand(greeting->context, on_killed, greeting, "CLIENT KILL ID %lld",
                          last->client);
    else
        succeed(greeting);
}

/* Errors to a PING that say nothing against the connection. */
static bool is_passing_trouble(const char *error)
{
    static const char *const codes[] = {"LOADING ", "BUSY ", "MASTERDOWN ", "NOPERM "};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strncmp(error, codes[i], strlen(codes[i])) == 0)
            return true;
    return false;
}

/* The PING tells a server that answers from one that merely accepts, and brings to light that a
 * password is missing. */
static void on_pong(redisAsyncContext *context, void *answer, void *arg)
{
    const redisReply *reply = answer;
    (void)context;
    if (!reply)
        return;
    if (reply->type == REDIS_REPLY_ERROR && !is_passing_trouble(reply->str))
        refused(arg, "PING", reply);
    else
        kill_last(arg);
}

static void on_client_id(redisAsyncContext *context, void *answer, void *arg)
{
    struct redis_greeting *greeting = arg;
    const redisReply *reply = answer;
    (void)context;
    if (reply && reply->type == REDIS_REPLY_INTEGER)
        greeting->own.client = reply->integer;
}

static void on_server(redisAsyncContext *context, void *answer, void *arg)
{
    struct redis_greeting *greeting = arg;
    const redisReply *reply = answer;
    (void)context;
    if (!reply || reply->type != REDIS_REPLY_STRING)
        return;
    const char *line = strstr(reply->str, "\nrun_id:");
    if (line)
        sscanf(line, "\nrun_id:%40[0-9a-f]", greeting->own.run_id);
}

static void on_auth(redisAsyncContext *context, void *answer, void *arg)
{
    const redisReply *reply = answer;
    (void)context;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        refused(arg, "AUTH", reply);
}

static void on_select(redisAsyncContext *context, void *answer, void *arg)
{
    const redisReply *reply = answer;
    (void)context;
    if (reply && reply->type == REDIS_REPLY_ERROR)
        refused(arg, "SELECT", reply);
}

void redis_greet(struct redis_greeting *greeting, redisAsyncContext *context)
{
    const struct redis_options *options = greeting->options;
    greeting->context = context;
    greeting->own = (struct redis_identity){0};
    if (options->password && options->user)
        redisAsyncCommand(context, on_auth, greeting, "AUTH %s %s", options->user,
                          options->password);
    else if (options->password)
        redisAsyncCommand(context, on_auth, greeting, "AUTH %s", options->password);
    if (options->db != 0)
        redisAsyncCommand(context, on_select, greeting, "SELECT %d", options->db);
    redisAsyncCommand(context, on_client_id, greeting, "CLIENT ID");
    redisAsyncCommand(context, on_server, greeting, "INFO server");
    redisAsyncCommand(context, on_pong, greeting, "PING");
}
