/* WAITING ──timer──▶ CONNECTING ──▶ GREETING (redis_greeting.h) ──▶ UP      (any) ──▶ CLOSED
 *    ▲                   │              │                             │
 *    └───── backoff ─────┴──────────────┴─────────────────────────────┘
 *
 * Replies are handed on as hiredis reads them. A command that ends without a reply goes to a list
 * whose callbacks are called from the top of the loop: hiredis ends commands while it frees its
 * context, where nobody may close or submit.
 */
#include "redis.h"
#include "allocate.h"
#include "redis_command.h"
#include "redis_greeting.h"
#include "redis_loop.h"

#include <assert.h>
#include <errno.h>

enum { BACKOFF_MIN_MS = 100, BACKOFF_MAX_MS = 2000 };

enum link_state { LINK_WAITING, LINK_CONNECTING, LINK_GREETING, LINK_UP, LINK_CLOSED };

struct redis {
    uv_loop_t *loop;
    struct redis_options options; /* with texts of its own */
    redis_state_cb state_cb;
    void *state_arg;
    enum link_state state;
    redisAsyncContext *context;
    struct redis_greeting greeting;
    struct redis_commands waiting; /* for the first connection */
    struct redis_commands sent;    /* in the order of their replies */
    struct redis_commands ended;   /* without a reply; to be told */
    uv_timer_t timer;              /* backoff, the limit for connecting, or the oldest deadline */
    uv_idle_t idle;                /* runs while `ended` holds something */
    unsigned handles;              /* not yet closed: timer, idle, and hiredis's sockets */
    uint64_t backoff_ms;
    bool is_new;      /* no attempt to connect has ended yet */
    bool told_down;   /* state_cb need not say it again */
    char reason[256]; /* why it is, or was last, down */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* For each state, the states that it may follow, a bit each. */
static void set_state(struct redis *redis, enum link_state state)
{
    static const unsigned from[] = {
        [LINK_WAITING] = 1U << LINK_CONNECTING | 1U << LINK_GREETING | 1U << LINK_UP,
        [LINK_CONNECTING] = 1U << LINK_WAITING,
        [LINK_GREETING] = 1U << LINK_CONNECTING,
        [LINK_UP] = 1U << LINK_GREETING,
        [LINK_CLOSED] =
            1U << LINK_WAITING | 1U << LINK_CONNECTING | 1U << LINK_GREETING | 1U << LINK_UP,
    };
    assert(from[state] & 1U << redis->state);
    (void)from; /* without assertions */
    redis->state = state;
}

/* Kept here because hiredis frees its own text with the context. */
static void set_reason(struct redis *redis, const char *what, const char *why)
{
    snprintf(redis->reason, sizeof redis->reason, "%s%s", what, why);
}

/* Commands. */

/* What ends while this runs waits for the next round: see pg_pool.c. */
static void deliver_ended(struct redis *redis)
{
    struct redis_commands ended = redis->ended;
    struct redis_command *command;
    redis->ended = (struct redis_commands){0};
    while ((command = redis_commands_take(&ended)))
        redis_command_deliver(command, NULL, redis->reason);
}

static void on_idle(uv_idle_t *idle)
{
    struct redis *redis = idle->data;
    uv_idle_stop(idle);
    deliver_ended(redis);
    if (redis->ended.first && redis->state != LINK_CLOSED)
        uv_idle_start(idle, on_idle);
}

/* Ended without a reply. hiredis may be on the stack, so the callback has to wait. */
static void end(struct redis *redis, struct redis_command *command)
{
    redis_commands_append(&redis->ended, command);
    if (redis->state != LINK_CLOSED)
        uv_idle_start(&redis->idle, on_idle);
}

static void on_reply(redisAsyncContext *context, void *reply, void *arg)
{
    struct redis_command *command = arg;
    struct redis *redis = command->redis;
    (void)context;
    assert(redis->sent.first == command);
    redis_commands_take(&redis->sent);
    if (!reply) {
        end(redis, command);
        return;
    }
    redis_command_deliver(command, reply, "");
}

/* Going down. */

static void on_timer(uv_timer_t *timer);

/* The loop's clock stands still while a callback runs: without the update a deadline could lie in
 * the past before anything was sent. */
static void start_timer(struct redis *redis, uint64_t after_ms)
{
    uv_update_time(redis->loop);
    uv_timer_start(&redis->timer, on_timer, after_ms, 0);
}

/* The context is gone; the reason is set. */
static void go_down(struct redis *redis)
{
    set_state(redis, LINK_WAITING);
    redis->is_new = false;
    while (redis->waiting.first)
        end(redis, redis_commands_take(&redis->waiting));
    start_timer(redis, redis->backoff_ms);
    redis->backoff_ms *= 2;
    if (redis->backoff_ms > BACKOFF_MAX_MS)
        redis->backoff_ms = BACKOFF_MAX_MS;
    bool told = redis->told_down;
    redis->told_down = true;
    if (!told && redis->state_cb)
        redis->state_cb(redis->state_arg, false, redis->reason);
}

/* Within one of its callbacks hiredis puts the freeing off until that has returned; its further
 * callbacks find no owner. */
static void free_context(struct redis *redis)
{
    redisAsyncContext *context = redis->context;
    if (!context)
        return;
    redis->context = NULL;
    context->data = NULL;
    redisAsyncFree(context);
}

static void drop(struct redis *redis)
{
    free_context(redis);
    go_down(redis);
}

/* hiredis frees the context after this. */
static void on_disconnect(const redisAsyncContext *context, int status)
{
    struct redis *redis = context->data;
    (void)status;
    if (!redis)
        return;
    set_reason(redis, "", context->err ? context->errstr : "the server closed the connection");
    redis->context = NULL;
    go_down(redis);
}

/* Coming up. */

static void send_waiting(struct redis *redis);

/* What waited goes first, so that order is kept. */
static void come_up(struct redis *redis)
{
    set_state(redis, LINK_UP);
    uv_timer_stop(&redis->timer);
    redis->backoff_ms = BACKOFF_MIN_MS;
    redis->is_new = redis->told_down = false;
    send_waiting(redis);
    if (redis->state_cb)
        redis->state_cb(redis->state_arg, true, NULL);
}

static void on_greeted(void *arg, const char *error)
{
    struct redis *redis = arg;
    if (!error) {
        come_up(redis);
        return;
    }
    set_reason(redis, "", error);
    drop(redis);
}

/* When it failed, hiredis frees the context after this. */
static void on_connect(const redisAsyncContext *context, int status)
{
    struct redis *redis = context->data;
    if (!redis)
        return;
    if (status != REDIS_OK) {
        set_reason(redis, "cannot connect: ", context->errstr);
        redis->context = NULL;
        go_down(redis);
        return;
    }
    set_state(redis, LINK_GREETING);
    redis_greet(&redis->greeting, redis->context);
}

static void release(void *arg);

/* `release` is counted for each context: its socket's handle closes later than the context is
 * forgotten. */
static void open_connection(struct redis *redis)
{
    const struct redis_options *options = &redis->options;
    redisAsyncContext *context =
        allocated(options->path ? redisAsyncConnectUnix(options->path)
                                : redisAsyncConnect(options->host, options->port));
    set_state(redis, LINK_CONNECTING);
    redis->context = context;
    if (context->err) {
        set_reason(redis, "cannot connect: ", context->errstr);
        drop(redis);
        return;
    }
    int rc = redis_loop_attach(context, redis->loop, release, redis);
    if (rc < 0) {
        set_reason(redis, "cannot watch the socket: ", uv_strerror(rc));
        drop(redis);
        return;
    }
    redis->handles++;
    context->data = redis;
    redisAsyncSetConnectCallback(context, on_connect);
    redisAsyncSetDisconnectCallback(context, on_disconnect);
    start_timer(redis, options->timeout_ms);
}

/* The timer. */

static void arm_deadline(struct redis *redis)
{
    if (!redis->sent.first)
        return;
    uint64_t now = uv_now(redis->loop), due = redis->sent.first->deadline;
    start_timer(redis, due > now ? due - now : 0);
}

/* After a pause of the whole process the reply may lie in the socket: it is looked at first. */
static void check_deadline(struct redis *redis)
{
    if (redis->sent.first)
        redisAsyncHandleRead(redis->context);
    if (redis->state != LINK_UP || !redis->sent.first)
        return;
    if (redis->sent.first->deadline > uv_now(redis->loop)) {
        arm_deadline(redis);
        return;
    }
    snprintf(redis->reason, sizeof redis->reason, "no answer within %llu ms",
             (unsigned long long)redis->options.timeout_ms);
    drop(redis);
}

static void on_timer(uv_timer_t *timer)
{
    struct redis *redis = timer->data;
    if (redis->state == LINK_WAITING) {
        open_connection(redis);
    } else if (redis->state == LINK_UP) {
        check_deadline(redis);
    } else {
        snprintf(redis->reason, sizeof redis->reason, "cannot connect within %llu ms",
                 (unsigned long long)redis->options.timeout_ms);
        drop(redis);
    }
}

/* Submitting. */

/* hiredis copies it to its buffer and never calls back from there. */
static void transmit(struct redis *redis, struct redis_command *command)
{
    uv_update_time(redis->loop);
    command->deadline = uv_now(redis->loop) + redis->options.timeout_ms;
    redis_commands_append(&redis->sent, command);
    if (!uv_is_active((uv_handle_t *)&redis->timer))
        arm_deadline(redis);
    redisAsyncFormattedCommand(redis->context, on_reply, command, command->wire,
                               command->wire_length);
    redis_command_sent(command);
}

static void send_waiting(struct redis *redis)
{
    while (redis->waiting.first)
        transmit(redis, redis_commands_take(&redis->waiting));
}

/* Sends it, lets it wait, or ends it. */
static void submit(struct redis *redis, struct redis_command *command, redis_answer_cb done,
                   void *arg)
{
    command->redis = redis;
    command->done = done;
    command->arg = arg;
    if (redis->state == LINK_UP)
        transmit(redis, command);
    else if (redis->is_new && redis->state != LINK_CLOSED)
        redis_commands_append(&redis->waiting, command);
    else
        end(redis, command);
}

void redis_fill(struct redis *redis, struct redis_bytes key, struct redis_bytes value,
                uint64_t ttl_ms, redis_answer_cb done, void *arg)
{
    submit(redis, redis_command_fill(key, value, ttl_ms), done, arg);
}

void redis_purge(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    submit(redis, redis_command_purge(key), done, arg);
}

void redis_purge_many(struct redis *redis, const struct redis_bytes *keys, size_t count,
                      redis_answer_cb done, void *arg)
{
    submit(redis, redis_command_purge_many(keys, count), done, arg);
}

void redis_scan(struct redis *redis, const char *cursor, struct redis_bytes pattern, unsigned count,
                redis_answer_cb done, void *arg)
{
    submit(redis, redis_command_scan(cursor, pattern, count), done, arg);
}

void redis_exists(struct redis *redis, struct redis_bytes key, redis_answer_cb done, void *arg)
{
    submit(redis, redis_command_exists(key), done, arg);
}

bool redis_is_up(const struct redis *redis)
{
    return redis->state == LINK_UP;
}

/* Life. */

static void release(void *arg)
{
    struct redis *redis = arg;
    if (--redis->handles > 0 || redis->state != LINK_CLOSED)
        return;
    while (redis->ended.first)
        deliver_ended(redis);
    void (*closed)(void *arg) = redis->closed;
    void *closed_arg = redis->closed_arg;
    free((char *)redis->options.host);
    free((char *)redis->options.path);
    free((char *)redis->options.user);
    free((char *)redis->options.password);
    free(redis);
    if (closed)
        closed(closed_arg);
}

static void on_closed(uv_handle_t *handle)
{
    release(handle->data);
}

int redis_create(struct redis **out, uv_loop_t *loop, const struct redis_options *options,
                 redis_state_cb state, void *arg)
{
    if ((!options->host && !options->path) || options->timeout_ms == 0)
        return -EINVAL;
    struct redis *redis = allocate(1, sizeof *redis);
    redis->loop = loop;
    redis->options = *options;
    redis->options.host = allocate_text(options->host);
    redis->options.path = allocate_text(options->path);
    redis->options.user = allocate_text(options->user);
    redis->options.password = allocate_text(options->password);
    redis->greeting =
        (struct redis_greeting){.options = &redis->options, .done = on_greeted, .arg = redis};
    redis->state_cb = state;
    redis->state_arg = arg;
    redis->backoff_ms = BACKOFF_MIN_MS;
    redis->is_new = true;
    uv_timer_init(loop, &redis->timer);
    uv_idle_init(loop, &redis->idle);
    redis->timer.data = redis->idle.data = redis;
    redis->handles = 2;
    start_timer(redis, 0);
    *out = redis;
    return 0;
}

void redis_close(struct redis *redis, void (*closed)(void *arg), void *arg)
{
    set_state(redis, LINK_CLOSED);
    redis->closed = closed;
    redis->closed_arg = arg;
    set_reason(redis, "", "closed");
    while (redis->waiting.first)
        end(redis, redis_commands_take(&redis->waiting));
    free_context(redis);
    uv_close((uv_handle_t *)&redis->timer, on_closed);
    uv_close((uv_handle_t *)&redis->idle, on_closed);
}
