/* All but the last command go out at once. Commands end without a reply when the connection is
 * lost, which others are told of.
 */
#include "redis/redis_greeting.h"

#include "redis/protocol/redis_role.h"

#include <stdio.h>
#include <string.h>

struct redis_login redis_login_of(const struct redis_options *options)
{
    return (struct redis_login){
        .user = options->user, .password = options->password, .db = options->db};
}

static void ask(struct redis_greeting *greeting, const char *const *words, size_t count,
                enum redis_form form, redis_answer_cb done)
{
    struct redis_command *command = redis_command_of(words, count);
    command->form = form;
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
 * in it may be wrong for ever. Nor is it usual: `check` warns of it. */
const char *redis_identity_doubt(const struct redis_identity *last,
                                 const struct redis_identity *own)
{
    if (!last->run_id[0] || !own->run_id[0])
        return "nobody knows whether it is the server that it was (INFO did not give its run_id)";
    if (strcmp(last->run_id, own->run_id) != 0)
        return "it is another server than before, or was started anew";
    if (strcmp(last->history, own->history) != 0)
        return "its data has another history than before (master_replid)";
    return NULL;
}

static bool is_passing_trouble(const struct redis_answer *answer)
{
    return answer->outcome == REDIS_REFUSED &&
           redis_is_passing_trouble(answer->error, strlen(answer->error));
}

static void note_trouble(struct redis_greeting *greeting, const struct redis_answer *answer)
{
    greeting->busy |= is_passing_trouble(answer);
}

/* `killed`: the server has forgotten the connection before, or never had it. */
static void succeed(struct redis_greeting *greeting, bool killed)
{
    const char *why =
        greeting->is_second ? redis_identity_doubt(&greeting->last, &greeting->own) : NULL;
    if (!why && greeting->left && !killed)
        why =
            "what was sent over the connection before may still be run (CLIENT ID and CLIENT KILL "
            "are not allowed)";
    greeting->doubt = why;
    greeting->is_second = true;
    greeting->left = false;
    greeting->last = greeting->own;
    greeting->done(greeting->arg, NULL);
}

/* Of a server that does not say who it is neither of these two is true. */
static bool is_same(const struct redis_greeting *greeting)
{
    return greeting->own.run_id[0] && strcmp(greeting->last.run_id, greeting->own.run_id) == 0;
}

static bool is_other(const struct redis_greeting *greeting)
{
    return greeting->own.run_id[0] && greeting->last.run_id[0] && !is_same(greeting);
}

/* What was left behind may still be run, and the server cannot be told now to forget it. */
static bool must_wait(struct redis_greeting *greeting, const struct redis_answer *answer)
{
    if (!greeting->left || !greeting->busy || is_other(greeting))
        return false;
    refused(greeting, "CLIENT KILL",
            answer->outcome == REDIS_REFUSED ? answer->error : "the server was busy");
    return true;
}

static void on_killed(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    note_trouble(greeting, answer);
    if (answer->outcome != REDIS_DOWN && !must_wait(greeting, answer))
        succeed(greeting, answer->outcome == REDIS_DONE);
}

/* Its number stays remembered until the server has answered: this connection may be lost as well.
 */
static void kill_last(struct redis_greeting *greeting)
{
    char id[24];
    snprintf(id, sizeof id, "%lld", greeting->last.client);
    if (is_same(greeting) && greeting->last.client)
        ask(greeting, (const char *[]){"CLIENT", "KILL", "ID", id}, 4, REDIS_FORM_NUMBER,
            on_killed);
    else
        succeed(greeting, is_other(greeting));
}

/* It takes no writes for now, PING included where its disk does not; all else it answers. */
static bool takes_no_writes(const struct redis_answer *answer)
{
    return answer->outcome == REDIS_REFUSED && redis_is_full(answer->error, strlen(answer->error));
}

/* The PING tells a server that answers from one that merely accepts, and brings to light that a
 * password is missing. */
static void on_pong(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    const char *objection =
        greeting->is_stranger ? redis_stranger_text : redis_role_objection(greeting->role);
    bool is_refused = answer->outcome == REDIS_REFUSED;
    note_trouble(greeting, answer);
    if (objection && answer->outcome != REDIS_DOWN)
        greeting->done(greeting->arg, objection);
    else if (is_refused && !is_passing_trouble(answer) && !takes_no_writes(answer) &&
             strncmp(answer->error, "NOPERM ", 7) != 0)
        refused(greeting, "PING", answer->error);
    else if (answer->outcome != REDIS_DOWN && !must_wait(greeting, answer))
        kill_last(greeting);
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

static void read_role(struct redis_greeting *greeting, const struct redis_answer *answer)
{
    enum redis_role role = answer->text.at ? redis_role_read(answer->text.at) : REDIS_ROLE_UNKNOWN;
    if (role != REDIS_ROLE_UNKNOWN)
        greeting->role = role;
}

static void on_server(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    note_trouble(greeting, answer);
    read_id(answer, "\nrun_id:", greeting->own.run_id);
    read_role(greeting, answer);
}

static void on_replication(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    read_id(answer, "\nmaster_replid:", greeting->own.history);
    read_role(greeting, answer);
}

/* One that cannot tell for now may be another's, unless it is the one that it was. */
static void on_node(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    if (is_passing_trouble(answer) && !is_same(greeting)) {
        refused(greeting, "CLUSTER MYID", answer->error);
        return;
    }
    greeting->is_stranger =
        answer->text.at && redis_map_is_stranger(greeting->map, &greeting->place, answer->text.at,
                                                 answer->text.length);
}

/* Asked last, and so believed before what INFO said. */
static void on_role(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    note_trouble(greeting, answer);
    if (answer->head.at)
        greeting->role = redis_role_of(answer->head.at, answer->head.length);
}

/* done() with an error has the connection given up: what was asked behind this then ends without a
 * reply, and says nothing more. */
static void on_login(void *arg, const struct redis_answer *answer)
{
    struct redis_greeting *greeting = arg;
    const char *step = greeting->steps[greeting->answered++].name;
    const char *refusal = answer->outcome == REDIS_REFUSED ? answer->error : NULL;
    if (redis_login_judge(&greeting->login, refusal, refusal ? strlen(refusal) : 0))
        refused(greeting, step, refusal);
}

void redis_greet(struct redis_greeting *greeting)
{
    size_t count = redis_login_steps(greeting->steps, &greeting->login);
    greeting->own = (struct redis_identity){0};
    greeting->busy = greeting->is_stranger = false;
    greeting->role = REDIS_ROLE_UNKNOWN;
    greeting->answered = 0;
    for (size_t i = 0; i < count; i++)
        ask(greeting, greeting->steps[i].words, greeting->steps[i].count, REDIS_FORM_OK, on_login);
    ask(greeting, (const char *[]){"CLIENT", "NO-EVICT", "ON"}, 3, REDIS_FORM_OK, NULL);
    ask(greeting, (const char *[]){"CLIENT", "ID"}, 2, REDIS_FORM_NUMBER, on_client_id);
    ask(greeting, (const char *[]){"INFO", "server"}, 2, REDIS_FORM_TEXT, on_server);
    ask(greeting, (const char *[]){"INFO", "replication"}, 2, REDIS_FORM_TEXT, on_replication);
    if (greeting->map)
        ask(greeting, (const char *[]){"CLUSTER", "MYID"}, 2, REDIS_FORM_TEXT, on_node);
    ask(greeting, (const char *[]){"ROLE"}, 1, REDIS_FORM_LIST, on_role);
    ask(greeting, (const char *[]){"PING"}, 1, REDIS_FORM_PONG, on_pong);
}
