/* One conversation, the login, INFO and CONFIG GET, on a loop of its own. All of it shares one
 * deadline, so that `check` takes no longer however many steps are slow.
 */
#include "redis/redis_survey.h"
#include "net/allocate.h"
#include "net/dial.h"
#include "redis/protocol/redis_command.h"
#include "redis/protocol/redis_login.h"
#include "redis/protocol/redis_wire.h"
#include "redis/redis_greeting.h"

#include <errno.h>

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
        .role = redis_role_read(text),
        .is_cluster_node = field_is(text, "cluster_enabled", "1"),
    };
    redis_standing_read(&out->standing, text);
    for (const char *at = text; out->replica_count < 8; out->replica_count++)
        if (!redis_standing_next(&at, &out->replicas[out->replica_count]))
            break;
    copy_field(text, "redis_version", out->version, sizeof out->version);
    copy_field(text, "maxmemory_policy", out->memory_policy, sizeof out->memory_policy);
}

struct talk {
    uv_loop_t loop;
    uv_timer_t timer;
    struct dial dial;
    struct redis_wire wire;
    struct redis_commands asked; /* their replies come in this order */
    struct redis_login login;
    struct redis_login_step steps[REDIS_LOGIN_STEPS];
    size_t count, done;                   /* of the steps */
    const char *step;                     /* under way */
    void (*questions)(struct talk *talk); /* sends them; the last one's answer ends it */
    struct redis_survey *out;
    const char *script, *const *keys; /* of two keys */
    char *said;                       /* [64] */
    const struct redis_trial *trials;
    size_t trial_count, tried;
    bool carries_out; /* MULTI was refused */
    char *error;      /* [256] */
    int status;
    bool dialing, ended;
};

/* The outcome that counts is the first one. */
static void end(struct talk *talk, int status, const char *what, const char *why)
{
    if (talk->ended)
        return;
    talk->ended = true;
    talk->status = status;
    if (status)
        snprintf(talk->error, 256, "%s%s%s", talk->step, what, why);
    uv_close((uv_handle_t *)&talk->timer, NULL);
    if (talk->dialing)
        dial_stop(&talk->dial);
    else if (talk->wire.open)
        wire_close(&talk->wire);
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct talk *talk = arg;
    struct redis_command *command = redis_commands_take(&talk->asked);
    if (command)
        redis_command_deliver(command, reply, "");
    else
        end(talk, -EPROTO, ": ", "more replies than were asked for");
}

static void on_broken(void *arg, const char *why, bool is_protocol)
{
    end(arg, is_protocol ? -EPROTO : -ECONNREFUSED, ": ", why);
}

static void on_wire_closed(void *arg)
{
    (void)arg;
}

static void on_late(uv_timer_t *timer)
{
    end(timer->data, -ETIMEDOUT, ": ", "timed out");
}

/* ---- the steps ---- */

static void ask(struct talk *talk, const char *const *words, size_t count, redis_answer_cb done)
{
    struct redis_command *command = redis_command_of(words, count);
    command->done = done;
    command->arg = talk;
    wire_append(&talk->wire, command->wire, command->wire_length);
    redis_commands_append(&talk->asked, command);
}

static void next_step(struct talk *talk)
{
    talk->step = talk->done < talk->count ? talk->steps[talk->done].name : "INFO";
    talk->done++;
}

static void on_login(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    const char *refusal = answer->outcome == REDIS_REFUSED ? answer->error : NULL;
    int status = redis_login_judge(&talk->login, refusal, refusal ? strlen(refusal) : 0);
    if (status)
        end(talk, status, " refused: ", refusal);
    next_step(talk);
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* INFO is not for every user, and may have another name: neither is a reason to know nothing. */
static bool is_withheld(const struct redis_answer *answer)
{
    return answer->outcome == REDIS_REFUSED &&
           (begins(answer->error, "NOPERM ") || begins(answer->error, "ERR unknown command"));
}

/* What answers INFO with another text, or none, is taken for no Redis. */
static void on_info(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    if (is_withheld(answer))
        return;
    if (answer->outcome == REDIS_REFUSED) {
        end(talk, -EACCES, " refused: ", answer->error);
        return;
    }
    if (answer->text.at)
        redis_survey_read(talk->out, answer->text.at);
    if (!talk->out->version[0])
        end(talk, -EPROTO, ": ", "the answer names no redis_version");
}

/* A refusal says nothing: CONFIG is not for everybody. */
static uint64_t limit_of(const struct redis_answer *answer)
{
    return answer->outcome == REDIS_DONE && answer->text.at ? strtoull(answer->text.at, NULL, 10)
                                                            : 0;
}

static void on_max_bulk(void *arg, const struct redis_answer *answer)
{
    ((struct talk *)arg)->out->max_bulk = limit_of(answer);
}

/* "normal 0 0 0 slave 268435456 67108864 60 pubsub …": a limit, one that may be passed for a time,
 * and the time. */
static void on_output_limit(void *arg, const struct redis_answer *answer)
{
    unsigned long long hard = 0, soft = 0;
    const char *normal = answer->outcome == REDIS_DONE && answer->text.at
                             ? strstr(answer->text.at, "normal ")
                             : NULL;
    if (normal)
        sscanf(normal, "normal %llu %llu", &hard, &soft);
    ((struct talk *)arg)->out->limits_output = hard || soft;
}

/* Bytes, or a part of maxmemory: "5%". Servers that evict none do not know it. */
static void on_client_memory(void *arg, const struct redis_answer *answer)
{
    ((struct talk *)arg)->out->evicts_clients = limit_of(answer) > 0;
}

static void on_stay(void *arg, const struct redis_answer *answer)
{
    ((struct talk *)arg)->out->may_stay = answer->outcome == REDIS_DONE;
}

static void on_max_clients(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    talk->out->max_clients = limit_of(answer);
    end(talk, 0, "", "");
}

/* Of a server that did not give INFO. */
static void on_role(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    if (talk->out->role == REDIS_ROLE_UNKNOWN && answer->head.at)
        talk->out->role = redis_role_of(answer->head.at, answer->head.length);
}

static void on_coverage(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    talk->out->wants_all_slots =
        answer->outcome == REDIS_DONE && answer->text.at && strcmp(answer->text.at, "yes") == 0;
}

static void ask_survey(struct talk *talk)
{
    ask(talk, (const char *[]){"INFO"}, 1, on_info);
    ask(talk, (const char *[]){"ROLE"}, 1, on_role);
    ask(talk, (const char *[]){"CONFIG", "GET", "cluster-require-full-coverage"}, 3, on_coverage);
    ask(talk, (const char *[]){"CONFIG", "GET", "proto-max-bulk-len"}, 3, on_max_bulk);
    ask(talk, (const char *[]){"CONFIG", "GET", "client-output-buffer-limit"}, 3, on_output_limit);
    ask(talk, (const char *[]){"CONFIG", "GET", "maxmemory-clients"}, 3, on_client_memory);
    ask(talk, (const char *[]){"CLIENT", "NO-EVICT", "ON"}, 3, on_stay);
    ask(talk, (const char *[]){"CONFIG", "GET", "maxclients"}, 3, on_max_clients);
}

static void on_said(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    bool is_text = answer->outcome == REDIS_DONE && answer->text.at;
    talk->step = "EVAL";
    if (is_text)
        snprintf(talk->said, 64, "%s", (const char *)answer->text.at);
    if (is_text)
        end(talk, 0, "", "");
    else
        end(talk, -EACCES, " refused: ", answer->error);
}

static void ask_script(struct talk *talk)
{
    ask(talk, (const char *[]){"EVAL", talk->script, "2", talk->keys[0], talk->keys[1]}, 5,
        on_said);
}

static void on_tried(void *arg, const struct redis_answer *answer)
{
    struct talk *talk = arg;
    const struct redis_trial *trial = &talk->trials[talk->tried++];
    if (answer->outcome == REDIS_REFUSED)
        snprintf(trial->refusal, REDIS_REFUSAL_SIZE, "%s", answer->error);
}

static void on_multi(void *arg, const struct redis_answer *answer)
{
    ((struct talk *)arg)->carries_out = answer->outcome == REDIS_REFUSED;
}

static void on_discarded(void *arg, const struct redis_answer *answer)
{
    (void)answer;
    end(arg, 0, "", "");
}

static void ask_trials(struct talk *talk)
{
    ask(talk, (const char *[]){"MULTI"}, 1, on_multi);
    for (size_t i = 0; i < talk->trial_count; i++)
        ask(talk, talk->trials[i].words, talk->trials[i].count, on_tried);
    ask(talk, (const char *[]){"DISCARD"}, 1, on_discarded);
}

static void converse(struct talk *talk)
{
    talk->count = redis_login_steps(talk->steps, &talk->login);
    for (size_t i = 0; i < talk->count; i++)
        ask(talk, talk->steps[i].words, talk->steps[i].count, on_login);
    talk->questions(talk);
    next_step(talk);
    wire_flush(&talk->wire);
}

static void on_dialed(void *arg, const char *error)
{
    struct talk *talk = arg;
    talk->dialing = false;
    if (error) {
        end(talk, -ECONNREFUSED, ": ", error);
        return;
    }
    wire_open(&talk->wire);
    converse(talk);
}

/* What is asked, and where the answers go, is set. The loop runs until end() has closed whatever
 * was open by then; commands that have no answer yet are freed behind it. */
static int hold(struct talk *talk, const struct redis_options *options)
{
    struct dial_options dial = {
        .host = options->host, .port = options->port, .path = options->path, .tls = options->tls};
    talk->login = redis_login_of(options);
    talk->step = "cannot connect";
    talk->dialing = true;
    talk->error[0] = '\0';
    talk->wire = (struct redis_wire){
        .reply = on_reply, .broken = on_broken, .closed = on_wire_closed, .arg = talk};
    uv_loop_init(&talk->loop);
    uv_timer_init(&talk->loop, &talk->timer);
    talk->timer.data = talk;
    uv_timer_start(&talk->timer, on_late, options->timeout_ms, 0);
    int status = dial_start(&talk->dial, &talk->loop, &talk->wire.stream, &dial, on_dialed, talk);
    if (status < 0)
        on_dialed(talk, uv_strerror(status));
    uv_run(&talk->loop, UV_RUN_DEFAULT);
    uv_loop_close(&talk->loop);
    while (talk->asked.first)
        redis_command_deliver(redis_commands_take(&talk->asked), NULL, "");
    return talk->status;
}

int redis_survey(const struct redis_options *options, struct redis_survey *out, char error[256])
{
    struct talk talk = {.questions = ask_survey, .out = out, .error = error};
    *out = (struct redis_survey){0};
    return hold(&talk, options);
}

int redis_ask_script(const struct redis_options *options, const char *script,
                     const char *const keys[2], char said[64], char error[256])
{
    struct talk talk = {
        .questions = ask_script, .script = script, .keys = keys, .said = said, .error = error};
    said[0] = '\0';
    return hold(&talk, options);
}

int redis_try(const struct redis_options *options, const struct redis_trial *trials, size_t count,
              char error[256])
{
    struct talk talk = {
        .questions = ask_trials, .trials = trials, .trial_count = count, .error = error};
    for (size_t i = 0; i < count; i++)
        trials[i].refusal[0] = '\0';
    int status = hold(&talk, options);
    return status ? status : talk.carries_out;
}
