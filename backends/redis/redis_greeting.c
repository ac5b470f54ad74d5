/* All but the last step go out at once. Commands end without a reply when the connection is lost,
 * which others are told of.
 */
#include "redis/redis_greeting.h"

#include <stdio.h>
#include <string.h>

static void ask(struct redis_greeting *greeting, const char *const *words, redis_answer_cb done)
{
    struct redis_command *command = redis_command_of(words);
    command->done = done;
    command->arg = greeting;
    greeting->send(greeting->arg, command);
}

static void refused(struct redis_greeting *greeting, const char *step, const char *why)
{
    char error[256];
    snprintf(error, sizeof error, "%s refused: %s", step, why);
    greeting->done(greeting->arg, error);
}

/* Static text, or NULL. Silence is doubt, too: to look through a cache again costs it a third of a
 * millisecond for a thousand keys, and the database a load for each that is asked for; what is left
 * in it may be wrong for ever. Nor is it usual: `check` insists on INFO. */
static const char *doubt(const struct redis_identity *last, const struct redis_identity *own)
{
    if (!last->run_id[0] || !own->run_id[0])
        return "nobody knows whether it is the server that it was (INFO did not give its run_id)";
    if (strcmp(last->run_id, own->run_id) != 0)
        return "it is another server than before, or was started anew";
    if (strcmp(last->history, own->history) != 0)
        return "its data has another history than before (master_replid)";
    return NULL;
}

static void succeed(struct redis_greeting *greeting)
{
    greeting->doubt = greeting->is_second ? doubt(&greeting->last, &greeting->own) : NULL;
    greeting->is_second = true;
    greeting->last = greeting->own;
    greeting->done(greeting->arg, NULL);
}

static void on_killed(void *arg, const struct redis_answer *answer)
{
    if (answer->outcome != REDIS_DOWN)
        succeed(arg);
}

/* Its number stays remembered until the server has answered: this connection may be lost as well.
 */
static void kill_last(struct redis_greeting *greeting)
{
    const struct redis_identity *last = &greeting->last, *own = &greeting->own;
    char id[24];
    snprintf(id, sizeof id, "%lld", last->client);
    if (last->client && own->run_id[0] && strcmp(last->run_id, own->run_id) == 0)
        ask(greeting, (const char *[]){"CLIENT", "KILL", "ID", id, NULL}, on_killed);
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
static void on_pong(void *arg, const struct redis_answer *answer)
{
    if (answer->outcome == REDIS_REFUSED && !is_passing_trouble(answer->error))
        refused(arg, "PING", answer->error);
    else if (answer->outcome != REDIS_DOWN)
        kill_last(arg);
}

static void on_client_id(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    greeting->own.client = answer->number; /* 0 when it was refused */
}

/* Of the text that INFO gave, as far as it did. */
static void read_id(const struct redis_answer *answer, const char *field, char id[41])
{
    const char *line = answer->text.at ? strstr(answer->text.at, field) : NULL;
    if (line)
        sscanf(line + strlen(field), "%40[0-9a-f]", id);
}

static void on_server(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    read_id(answer, "\nrun_id:", greeting->own.run_id);
}

static void on_replication(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    read_id(answer, "\nmaster_replid:", greeting->own.history);
}

static void on_auth(void *arg, const struct redis_answer *answer)
{
    if (answer->outcome == REDIS_REFUSED)
        refused(arg, "AUTH", answer->error);
}

static void on_select(void *arg, const struct redis_answer *answer)
{
    if (answer->outcome == REDIS_REFUSED)
        refused(arg, "SELECT", answer->error);
}

static void authenticate(struct redis_greeting *greeting)
{
    const struct redis_options *options = greeting->options;
    if (!options->password)
        return;
    if (options->user)
        ask(greeting, (const char *[]){"AUTH", options->user, options->password, NULL}, on_auth);
    else
        ask(greeting, (const char *[]){"AUTH", options->password, NULL}, on_auth);
}

void redis_greet(struct redis_greeting *greeting)
{
    char db[16];
    snprintf(db, sizeof db, "%d", greeting->options->db);
    greeting->own = (struct redis_identity){0};
    authenticate(greeting);
    if (greeting->options->db != 0)
        ask(greeting, (const char *[]){"SELECT", db, NULL}, on_select);
    ask(greeting, (const char *[]){"CLIENT", "ID", NULL}, on_client_id);
    ask(greeting, (const char *[]){"INFO", "server", NULL}, on_server);
    ask(greeting, (const char *[]){"INFO", "replication", NULL}, on_replication);
    ask(greeting, (const char *[]){"PING", NULL}, on_pong);
}
