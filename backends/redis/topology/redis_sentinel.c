/* What was said last counts only while the connection stands: a sentinel that cannot be heard says
 * nothing. Replies come in the order of the questions, messages of the channel between them.
 */
#include "redis/topology/redis_sentinel.h"

#include "redis/protocol/redis_command.h"

#include <hiredis.h>
#include <stdio.h>
#include <string.h>

enum { PULSE_MS = 1000 };

static const struct backoff_bounds backoff_bounds = {100, 1000};

/* Of what the reply is that comes next. */
enum expected { EXPECT_LOGIN, EXPECT_PRIMARY, EXPECT_SUBSCRIPTION, EXPECT_ITS_END };

static const char channel[] = "+switch-master";

static void on_timer(uv_timer_t *timer);

static void start_timer(struct redis_sentinel *sentinel, uint64_t after_ms)
{
    uv_update_time(sentinel->loop);
    uv_timer_start(&sentinel->timer, on_timer, after_ms, 0);
}

/* ---- what it says ---- */

/* Whatever it said, or that it says nothing: whoever asked has had his answer. */
static void tell(struct redis_sentinel *sentinel)
{
    sentinel->asked = false;
    sentinel->told(sentinel->arg, sentinel);
}

/* `what` and `why` together are the reason. */
static void says_nothing(struct redis_sentinel *sentinel, const char *what, const char *why)
{
    if (sentinel->knows)
        sentinel->silent = uv_now(sentinel->loop);
    sentinel->knows = false;
    snprintf(sentinel->why, sizeof sentinel->why, "%s%s", what, why);
}

static void says(struct redis_sentinel *sentinel, const char *host, const char *port)
{
    if (!redis_place_set(&sentinel->primary, host, port)) {
        says_nothing(sentinel, "names no address", "");
        return;
    }
    sentinel->knows = true;
    sentinel->why[0] = '\0';
}

/* ---- its end ---- */

static void release(struct redis_sentinel *sentinel)
{
    if (--sentinel->handles == 0 && sentinel->state == SENTINEL_CLOSED)
        sentinel->closed(sentinel->arg);
}

/* Nothing is open any more. */
static void wait_for_next(struct redis_sentinel *sentinel)
{
    if (sentinel->state != SENTINEL_CLOSED) {
        sentinel->state = SENTINEL_WAITING;
        start_timer(sentinel, backoff_next(&sentinel->backoff, &backoff_bounds));
    }
    release(sentinel);
}

/* What was open in that state; its callback ends in wait_for_next(). */
static void close_link(struct redis_sentinel *sentinel, enum redis_sentinel_state before)
{
    if (before == SENTINEL_DIALING)
        dial_stop(&sentinel->dial);
    else if (before == SENTINEL_UP)
        wire_close(&sentinel->wire);
}

static void lose(struct redis_sentinel *sentinel, const char *why)
{
    enum redis_sentinel_state before = sentinel->state;
    uv_timer_stop(&sentinel->timer);
    sentinel->state = SENTINEL_CLOSING;
    sentinel->turn++;
    close_link(sentinel, before);
    says_nothing(sentinel, why, "");
    tell(sentinel);
}

static void on_broken(void *arg, const char *why, bool is_protocol)
{
    (void)is_protocol;
    lose(arg, why);
}

static void on_wire_closed(void *arg)
{
    wait_for_next(arg);
}

/* ---- questions ---- */

/* The reply will be of this kind. Of the command only its bytes are wanted: it is told to nobody,
 * and so freed. */
static void say(struct redis_sentinel *sentinel, enum expected expected, const char *const *words,
                size_t count)
{
    struct redis_command *command = redis_command_of(words, count);
    wire_append(&sentinel->wire, command->wire, command->wire_length);
    redis_command_deliver(command, NULL, "");
    sentinel->replies[sentinel->reply_count++] = (uint8_t)expected;
}

/* A connection of RESP2 that has a subscription takes no other question, so that is ended first and
 * comes last. */
static void ask(struct redis_sentinel *sentinel)
{
    if (sentinel->subscribed)
        say(sentinel, EXPECT_ITS_END, (const char *[]){"UNSUBSCRIBE", channel}, 2);
    say(sentinel, EXPECT_PRIMARY,
        (const char *[]){"SENTINEL", "GET-MASTER-ADDR-BY-NAME", sentinel->options.name}, 3);
    if (!sentinel->is_endless)
        say(sentinel, EXPECT_SUBSCRIPTION, (const char *[]){"SUBSCRIBE", channel}, 2);
    sentinel->subscribed = !sentinel->is_endless;
    wire_flush(&sentinel->wire);
    start_timer(sentinel, sentinel->options.timeout_ms);
}

/* ---- answers ---- */

static bool is_text(const struct redisReply *reply, const char *text)
{
    return reply->type == REDIS_REPLY_STRING && strcmp(reply->str, text) == 0;
}

static bool is_message(const struct redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
           is_text(reply->element[0], "message") && reply->element[2]->type == REDIS_REPLY_STRING;
}

/* "mymaster 10.0.0.1 6379 10.0.0.2 6379" */
static void take_message(struct redis_sentinel *sentinel, const char *text)
{
    char name[256], host[REDIS_HOST_SIZE], port[8];
    if (sscanf(text, "%255s %*s %*s %255s %7s", name, host, port) != 3 ||
        strcmp(name, sentinel->options.name) != 0)
        return;
    says(sentinel, host, port);
    tell(sentinel);
}

/* Host and port, or nil: no primary of that name. */
static void take_primary(struct redis_sentinel *sentinel, const struct redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
        reply->element[0]->type == REDIS_REPLY_STRING &&
        reply->element[1]->type == REDIS_REPLY_STRING)
        says(sentinel, reply->element[0]->str, reply->element[1]->str);
    else if (reply->type == REDIS_REPLY_ERROR)
        says_nothing(sentinel, "", reply->str);
    else
        says_nothing(sentinel, "does not know a primary of the name ", sentinel->options.name);
    tell(sentinel);
}

/* What it is asked without having logged in, it would refuse as well. */
static void take_login(struct redis_sentinel *sentinel, const struct redisReply *reply)
{
    char why[160];
    if (reply->type != REDIS_REPLY_ERROR)
        return;
    snprintf(why, sizeof why, "refuses the login: %s", reply->str);
    lose(sentinel, why);
}

/* Refused, it is not for everybody; the next question comes soon. */
static void take_subscription(struct redis_sentinel *sentinel, const struct redisReply *reply)
{
    sentinel->is_deaf = reply->type == REDIS_REPLY_ERROR;
    if (sentinel->is_deaf)
        sentinel->subscribed = false;
}

/* Refused, nothing can be asked over this connection any more. */
static void take_end(struct redis_sentinel *sentinel, const struct redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ERROR)
        return;
    sentinel->is_endless = sentinel->is_deaf = true;
    lose(sentinel, "refuses UNSUBSCRIBE");
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct redis_sentinel *sentinel = arg;
    if (is_message(reply)) {
        take_message(sentinel, reply->element[2]->str);
        return;
    }
    if (!sentinel->reply_count) {
        lose(sentinel, "a reply that nothing was asked for");
        return;
    }
    enum expected expected = sentinel->replies[0];
    memmove(sentinel->replies, sentinel->replies + 1, --sentinel->reply_count);
    if (!sentinel->reply_count) {
        backoff_reset(&sentinel->backoff);
        start_timer(sentinel, PULSE_MS);
    }
    if (expected == EXPECT_LOGIN)
        take_login(sentinel, reply);
    else if (expected == EXPECT_PRIMARY)
        take_primary(sentinel, reply);
    else if (expected == EXPECT_SUBSCRIPTION)
        take_subscription(sentinel, reply);
    else
        take_end(sentinel, reply);
}

/* ---- connecting ---- */

static void log_in(struct redis_sentinel *sentinel)
{
    size_t count = redis_login_steps(sentinel->steps, &sentinel->options.login);
    for (size_t i = 0; i < count; i++)
        say(sentinel, EXPECT_LOGIN, sentinel->steps[i].words, sentinel->steps[i].count);
}

static void on_dialed(void *arg, const char *error)
{
    struct redis_sentinel *sentinel = arg;
    bool dialing = sentinel->state == SENTINEL_DIALING;
    if (error && dialing) {
        uv_timer_stop(&sentinel->timer);
        sentinel->turn++;
        says_nothing(sentinel, "cannot connect: ", error);
        wait_for_next(sentinel);
        tell(sentinel);
    } else if (error) {
        wait_for_next(sentinel);
    } else {
        sentinel->state = SENTINEL_UP;
        sentinel->subscribed = false;
        sentinel->reply_count = 0;
        wire_open(&sentinel->wire);
        log_in(sentinel);
        ask(sentinel);
    }
}

static void open_link(struct redis_sentinel *sentinel)
{
    const struct redis_sentinel_options *options = &sentinel->options;
    struct dial_options dial = {
        .host = options->host, .port = options->port, .tls = options->tls, .turn = sentinel->turn};
    sentinel->state = SENTINEL_DIALING;
    sentinel->handles++;
    start_timer(sentinel, options->timeout_ms);
    int status = dial_start(&sentinel->dial, sentinel->loop, &sentinel->wire.stream, &dial,
                            on_dialed, sentinel);
    if (status < 0)
        on_dialed(sentinel, uv_strerror(status));
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_sentinel *sentinel = timer->data;
    if (sentinel->state == SENTINEL_WAITING)
        open_link(sentinel);
    else if (sentinel->state == SENTINEL_UP && !sentinel->reply_count)
        ask(sentinel);
    else
        lose(sentinel, "no answer in time");
}

/* ---- life ---- */

void redis_sentinel_open(struct redis_sentinel *sentinel, uv_loop_t *loop)
{
    sentinel->loop = loop;
    sentinel->wire = (struct redis_wire){
        .reply = on_reply, .broken = on_broken, .closed = on_wire_closed, .arg = sentinel};
    uv_timer_init(loop, &sentinel->timer);
    sentinel->timer.data = sentinel;
    sentinel->handles = 1;
    sentinel->silent = uv_now(loop);
    sentinel->asked = true;
    start_timer(sentinel, 0);
}

/* One that is asked just now answers as it stands when it reads that, which is later than now. Not
 * so one whose answer may be on its way already: that is one to the question of a moment ago. */
void redis_sentinel_ask(struct redis_sentinel *sentinel)
{
    sentinel->asked = true;
    if (sentinel->state == SENTINEL_WAITING)
        start_timer(sentinel, 0);
    else if (sentinel->state == SENTINEL_UP && !sentinel->reply_count)
        ask(sentinel);
}

static void on_timer_closed(uv_handle_t *timer)
{
    release(timer->data);
}

void redis_sentinel_close(struct redis_sentinel *sentinel)
{
    enum redis_sentinel_state before = sentinel->state;
    sentinel->state = SENTINEL_CLOSED;
    close_link(sentinel, before);
    uv_close((uv_handle_t *)&sentinel->timer, on_timer_closed);
}
