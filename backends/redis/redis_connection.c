/* WAITING ──timer──▶ DIALING ──▶ GREETING (redis_greeting.h) ──▶ UP      (any) ──▶ CLOSED
 *    ▲                  │              │                           │
 *    └──── CLOSING ◀────┴──────────────┴───────────────────────────┘
 *   backoff
 *
 * Replies are handed on as they are read. A command that ends without a reply goes to a list whose
 * callbacks are called from the top of the loop: whoever submits or closes is not called back from
 * there.
 */
#include "net/allocate.h"
#include "redis/redis_fleet.h"
#include "redis/redis_internal.h"

#include <assert.h>
#include <errno.h>
#include <hiredis.h>

enum { PULSE_MS = 1000 }; /* from one question for the server's role to the next */

static const struct backoff_bounds backoff_bounds = {100, 2000};
/* Sentinels tell who is next, and nobody shall wait for long after that. */
static const struct backoff_bounds followed_bounds = {100, 500};

/* For each state, the states that it may follow, a bit each. */
static void set_state(struct redis *redis, enum link_state state)
{
    static const unsigned from[] = {
        [LINK_WAITING] = 1U << LINK_CLOSING | 1U << LINK_DIALING,
        [LINK_DIALING] = 1U << LINK_WAITING,
        [LINK_GREETING] = 1U << LINK_DIALING,
        [LINK_UP] = 1U << LINK_GREETING,
        [LINK_CLOSING] = 1U << LINK_DIALING | 1U << LINK_GREETING | 1U << LINK_UP,
        [LINK_CLOSED] = 1U << LINK_WAITING | 1U << LINK_DIALING | 1U << LINK_GREETING |
                        1U << LINK_UP | 1U << LINK_CLOSING,
    };
    assert(from[state] & 1U << redis->state);
    (void)from; /* without assertions */
    redis->state = state;
}

/* Why it is down, or what commands end with that got no reply: `what` and `why` together. */
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

/* Everything that was submitted in one turn of the loop is written at once. */
static void on_idle(uv_idle_t *idle)
{
    struct redis *redis = idle->data;
    uv_idle_stop(idle);
    deliver_ended(redis);
    wire_flush(&redis->wire);
    if (redis->ended.first && redis->state != LINK_CLOSED)
        uv_idle_start(idle, on_idle);
}

static void wake(struct redis *redis)
{
    if (redis->state != LINK_CLOSED)
        uv_idle_start(&redis->idle, on_idle);
}

/* Ended without a reply. */
static void end(struct redis *redis, struct redis_command *command)
{
    redis_commands_append(&redis->ended, command);
    wake(redis);
}

/* Empties the list. */
static void end_all(struct redis *redis, struct redis_commands *commands)
{
    while (commands->first)
        end(redis, redis_commands_take(commands));
}

/* Going down. */

static void on_timer(uv_timer_t *timer);
static void release(struct redis *redis);

/* The loop's clock stands still while a callback runs: without the update a deadline could lie in
 * the past before anything was sent. */
static void start_timer(struct redis *redis, uint64_t after_ms)
{
    uv_update_time(redis->loop);
    uv_timer_start(&redis->timer, on_timer, after_ms, 0);
}

/* Nothing is open any more. */
static void wait_for_next(struct redis *redis)
{
    if (redis->state != LINK_CLOSED) {
        set_state(redis, LINK_WAITING);
        start_timer(redis, backoff_next(&redis->backoff,
                                        redis->topology ? &followed_bounds : &backoff_bounds));
    }
    release(redis);
}

/* The reason is set. What was sent may have run or not. */
static void tell_down(struct redis *redis)
{
    bool told = redis->told_down;
    redis->is_new = redis->late = false;
    uv_timer_stop(&redis->timer);
    uv_timer_stop(&redis->pulse);
    end_all(redis, &redis->sent);
    end_all(redis, &redis->waiting);
    redis->told_down = true;
    if (!told && redis->state_cb)
        redis->state_cb(redis->state_arg, false, redis->reason);
}

/* What was open in that state; its callback ends in wait_for_next(). */
static void close_link(struct redis *redis, enum link_state before)
{
    if (before == LINK_DIALING)
        redis_dial_stop(&redis->dial);
    else
        wire_close(&redis->wire);
}

/* The reason is set. Where sentinels may name another server, this one is not believed to be the
 * primary for a while. */
static void lose(struct redis *redis)
{
    enum link_state before = redis->state;
    redis->greeting.left |= before == LINK_UP && redis->sent.first;
    if (before == LINK_UP)
        redis->down_since = uv_now(redis->loop);
    redis_dial_distrust(&redis->dial);
    set_state(redis, LINK_CLOSING);
    close_link(redis, before);
    tell_down(redis);
}

static void on_broken(void *arg, const char *why, bool is_protocol)
{
    struct redis *redis = arg;
    (void)is_protocol;
    set_reason(redis, "", why);
    lose(redis);
}

static void on_wire_closed(void *arg)
{
    wait_for_next(arg);
}

/* Replies. */

static void ask_role(struct redis *redis);

/* That of the oldest: replies come in order. */
static void arm_deadline(struct redis *redis)
{
    if (!redis->sent.first)
        return;
    uint64_t now = uv_now(redis->loop), due = redis->sent.first->deadline;
    start_timer(redis, due > now ? due - now : 0);
}

/* A full server refuses writes and nothing else: one that succeeds tells that it has room again. */
static void note_trouble(struct redis *redis, const struct redis_command *command,
                         const struct redisReply *reply)
{
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    bool is_full = is_error && redis_is_full(reply->str, reply->len);
    if (is_full || (is_error && redis_is_passing_trouble(reply->str, reply->len))) {
        redis->is_full = is_full;
        snprintf(redis->trouble, sizeof redis->trouble, "%s", reply->str);
    } else if (!is_error && (command->writes || !redis->is_full)) {
        redis->trouble[0] = '\0';
    }
}

/* One that nobody asked for is a server that closes us: "-ERR max number of clients reached". */
static void on_reply(void *arg, const struct redisReply *reply)
{
    struct redis *redis = arg;
    redis->late = false;
    if (!redis_command_is_answered_by(redis->sent.first, reply)) {
        on_broken(redis, "a reply that nothing was asked for", true);
        return;
    }
    struct redis_command *command = redis_commands_take(&redis->sent);
    note_trouble(redis, command, reply);
    if (reply->type == REDIS_REPLY_ERROR && redis_is_readonly(reply->str, reply->len))
        ask_role(redis);
    redis_command_deliver(command, reply, "");
}

/* Coming up. */

/* Its bytes leave at the end of the turn, together with all others. */
static void transmit(struct redis *redis, struct redis_command *command)
{
    uv_update_time(redis->loop);
    command->deadline = uv_now(redis->loop) + redis->options.timeout_ms;
    redis_commands_append(&redis->sent, command);
    if (redis->state == LINK_UP && !uv_is_active((uv_handle_t *)&redis->timer))
        arm_deadline(redis);
    wire_give(&redis->wire, redis_command_take_wire(command), command->wire_length);
    wake(redis);
}

/* Whatever it confirms from now on its primary overwrites. */
static void on_role(void *arg, const struct redis_answer *answer)
{
    struct redis *redis = arg;
    redis->asking_role = false;
    enum redis_role role = redis_role_of(answer->head.at, answer->head.length);
    const char *objection = redis_role_objection(role);
    if (!objection || redis->state != LINK_UP)
        return;
    redis->greeting.role = role;
    set_reason(redis, "", objection);
    lose(redis);
}

/* Once a second, and whenever a write was refused by a replica. */
static void ask_role(struct redis *redis)
{
    if (redis->asking_role || redis->state != LINK_UP)
        return;
    struct redis_command *command = redis_command_of((const char *[]){"ROLE"}, 1);
    command->form = REDIS_FORM_LIST;
    command->done = on_role;
    command->arg = redis;
    redis->asking_role = true;
    transmit(redis, command);
}

static void on_pulse(uv_timer_t *pulse)
{
    ask_role(pulse->data);
}

static void greet_with(void *arg, struct redis_command *command)
{
    transmit(arg, command);
}

/* What waited goes first, so that order is kept. */
static void on_greeted(void *arg, const char *error)
{
    struct redis *redis = arg;
    if (redis->state != LINK_GREETING) /* the callback of a command before has closed it */
        return;
    if (error) {
        set_reason(redis, "", error);
        lose(redis);
        return;
    }
    set_state(redis, LINK_UP);
    uv_timer_stop(&redis->timer);
    uv_timer_start(&redis->pulse, on_pulse, PULSE_MS, PULSE_MS);
    backoff_reset(&redis->backoff);
    redis->is_new = redis->told_down = false;
    while (redis->waiting.first)
        transmit(redis, redis_commands_take(&redis->waiting));
    if (redis->state_cb)
        redis->state_cb(redis->state_arg, true, NULL);
}

/* Connected, not, or given up: then the state has changed meanwhile. */
static void on_dialed(void *arg, const char *error)
{
    struct redis *redis = arg;
    if (!error) {
        set_state(redis, LINK_GREETING);
        redis->trouble[0] = '\0';
        wire_open(&redis->wire);
        redis_greet(&redis->greeting);
        return;
    }
    if (redis->state == LINK_DIALING) {
        redis_dial_distrust(&redis->dial);
        set_reason(redis, "cannot connect: ", error);
        tell_down(redis);
    }
    wait_for_next(redis);
}

static void open_link(struct redis *redis)
{
    const struct redis_options *options = &redis->options;
    struct redis_target target = {.topology = redis->topology,
                                  .fixed = {.host = options->host,
                                            .port = options->port,
                                            .path = options->path,
                                            .tls = options->tls}};
    set_state(redis, LINK_DIALING);
    redis->handles++;
    start_timer(redis, options->timeout_ms);
    int status =
        redis_dial_start(&redis->dial, redis->loop, &redis->wire.stream, &target, on_dialed, redis);
    if (status < 0)
        on_dialed(redis, uv_strerror(status));
}

/* The timer. */

static void give_up(struct redis *redis, const char *what)
{
    snprintf(redis->reason, sizeof redis->reason, "%s within %llu ms", what,
             (unsigned long long)redis->options.timeout_ms);
    lose(redis);
}

/* After a pause of the whole process the reply may lie in the socket, which the loop looks at
 * before the timer comes again. (A timer of 0 ms would come again in the same round of timers.) */
static void check_deadline(struct redis *redis)
{
    if (!redis->sent.first)
        return;
    if (redis->sent.first->deadline > uv_now(redis->loop)) {
        arm_deadline(redis);
    } else if (!redis->late) {
        redis->late = true;
        start_timer(redis, 1);
    } else {
        give_up(redis, "no answer");
    }
}

/* One timer, whose meaning the state tells. */
static void on_timer(uv_timer_t *timer)
{
    struct redis *redis = timer->data;
    if (redis->state == LINK_WAITING)
        open_link(redis);
    else if (redis->state == LINK_UP)
        check_deadline(redis);
    else
        give_up(redis, "cannot connect");
}

/* Submitting. */

/* Before the first connection has come up or failed, commands wait; later, what cannot be sent ends
 * at once. */
void redis_submit(struct redis *redis, struct redis_command *command, redis_answer_cb done,
                  void *arg)
{
    command->done = done;
    command->arg = arg;
    if (redis->state == LINK_UP)
        transmit(redis, command);
    else if (redis->is_new && redis->state != LINK_CLOSED)
        redis_commands_append(&redis->waiting, command);
    else
        end(redis, command);
}

/* Life. */

static void free_redis(struct redis *redis)
{
    free((char *)redis->options.host);
    free((char *)redis->options.path);
    free((char *)redis->options.user);
    free((char *)redis->options.password);
    tls_context_release(redis->options.tls);
    free(redis);
}

/* A handle is closed. When it was the last one, whoever still waits is told, then who closed. */
static void release(struct redis *redis)
{
    if (--redis->handles > 0 || redis->state != LINK_CLOSED)
        return;
    while (redis->ended.first)
        deliver_ended(redis);
    void (*closed)(void *arg) = redis->closed;
    void *closed_arg = redis->closed_arg;
    free_redis(redis);
    if (closed)
        closed(closed_arg);
}

static void on_handle_closed(uv_handle_t *handle)
{
    release(handle->data);
}

static void on_topology_closed(void *arg)
{
    release(arg);
}

static void on_fleet_closed(void *arg)
{
    ((struct redis *)arg)->fleet = NULL;
    release(arg);
}

/* Most sentinels name another: nothing is left to wait for. */
static void on_moved(void *arg)
{
    struct redis *redis = arg;
    if (redis->state == LINK_WAITING) {
        backoff_reset(&redis->backoff);
        start_timer(redis, 0);
    } else if ((redis->state == LINK_DIALING || redis->state == LINK_GREETING ||
                redis->state == LINK_UP) &&
               redis_dial_is_outdated(&redis->dial)) {
        set_reason(redis, "", "the sentinels name another primary");
        backoff_reset(&redis->backoff);
        lose(redis);
    }
}

/* Texts are copied, and the context held. */
static void copy_options(struct redis_options *out, const struct redis_options *options)
{
    *out = *options;
    out->host = allocate_text(options->host);
    out->path = allocate_text(options->path);
    out->user = allocate_text(options->user);
    out->password = allocate_text(options->password);
    if (options->tls)
        tls_context_hold(options->tls);
}

int redis_create(struct redis **out, uv_loop_t *loop, const struct redis_options *options,
                 redis_state_cb state, void *arg)
{
    if ((!options->host && !options->path && !options->sentinels && !options->nodes) ||
        options->timeout_ms == 0)
        return -EINVAL;
    struct redis *redis = allocate(1, sizeof *redis);
    redis->loop = loop;
    copy_options(&redis->options, options);
    redis->greeting = (struct redis_greeting){.login = redis_login_of(&redis->options),
                                              .send = greet_with,
                                              .done = on_greeted,
                                              .arg = redis,
                                              .map = options->map};
    if (options->map) {
        redis->greeting.place.port = options->port;
        snprintf(redis->greeting.place.host, REDIS_HOST_SIZE, "%s", options->host);
    }
    redis->wire = (struct redis_wire){
        .reply = on_reply, .broken = on_broken, .closed = on_wire_closed, .arg = redis};
    redis->state_cb = state;
    redis->state_arg = arg;
    redis->is_new = true;
    redis->down_since = uv_now(loop);
    uv_timer_init(loop, &redis->timer);
    uv_timer_init(loop, &redis->pulse);
    uv_idle_init(loop, &redis->idle);
    redis->timer.data = redis->pulse.data = redis->idle.data = redis;
    redis->handles = 3;
    if (options->sentinels) {
        redis->topology = redis_topology_create(loop, options->sentinels, on_moved, redis);
        redis->handles++;
    }
    *out = redis;
    if (options->nodes)
        redis_fleet_open(redis);
    else
        start_timer(redis, 0);
    return 0;
}

void redis_close(struct redis *redis, void (*closed)(void *arg), void *arg)
{
    enum link_state before = redis->state;
    set_state(redis, LINK_CLOSED);
    redis->closed = closed;
    redis->closed_arg = arg;
    set_reason(redis, "", "closed");
    end_all(redis, &redis->sent);
    end_all(redis, &redis->waiting);
    if (before == LINK_DIALING || before == LINK_GREETING || before == LINK_UP)
        close_link(redis, before);
    uv_close((uv_handle_t *)&redis->timer, on_handle_closed);
    uv_close((uv_handle_t *)&redis->pulse, on_handle_closed);
    if (redis->topology)
        redis_topology_close(redis->topology, on_topology_closed, redis);
    if (redis->fleet)
        redis_fleet_close(redis->fleet, on_fleet_closed, redis);
    uv_close((uv_handle_t *)&redis->idle, on_handle_closed);
}
