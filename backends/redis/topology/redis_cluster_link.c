/* WAITING ──▶ DIALING ──▶ UP: login ─▶ CLUSTER INFO, CLUSTER SLOTS, and again      any ──▶ CLOSED
 *    ▲ soon       │         │
 *    └─ CLOSING ◀─┴─────────┘
 *
 * Whoever failed is not asked again before all others were: candidates are gone through in turn,
 * the nodes of the map first, then the seeds. Only when a whole round has failed is there a pause
 * that is worth the name.
 *
 * A node that is cut off from the others answers all the same, with what it knew before: what gives
 * it away is that its cluster is down, as it says. So after a trouble that is asked, too, once a
 * second, and who says so is left for another. If all do the map stays as it is, and who is
 * connected is asked until he says otherwise, each in turn for a second.
 */
#include "redis/topology/redis_cluster_internal.h"

#include "net/allocate.h"
#include "net/tls.h"
#include "redis/protocol/redis_command.h"

#include <errno.h>
#include <hiredis.h>
#include <string.h>

enum {
    PULSE_MS = 1000,
    TROUBLED_MS = 250,  /* the same, for a while after something was not where it should be */
    LASTING_MS = 60000, /* that while: others need so long at most to take a lost node's place */
    SOON_MS = 100,      /* between two questions, whoever wants them */
    PATIENCE_MS = 700,  /* for connecting, and for an answer */
    NEXT_MS = 5,        /* to the next candidate of a round */
    MOST_BYTES = 16 * 1024 * 1024 /* of an answer: each slot a range, each with many replicas */
};

static const struct backoff_bounds backoff_bounds = {100, 1000}; /* between rounds */

static void on_timer(uv_timer_t *timer);

static void start_timer(struct redis_cluster *cluster, uint64_t after_ms)
{
    uv_update_time(cluster->loop);
    uv_timer_start(&cluster->timer, on_timer, after_ms, 0);
}

static void release(struct redis_cluster *cluster);

/* ---- its end ---- */

static void note_failure(struct redis_cluster *cluster, const char *what, const char *why)
{
    char place[REDIS_PLACE_TEXT];
    redis_place_print(&cluster->place, place);
    snprintf(cluster->why, sizeof cluster->why, "%.100s: %s%.150s", place, what, why);
    cluster->failed++;
}

/* Whoever breaks off behind a right answer, or is left for somebody who was named, has been asked
 * just now. */
static uint64_t until_next(struct redis_cluster *cluster, bool round_over)
{
    uint64_t after = round_over ? backoff_next(&cluster->backoff, &backoff_bounds) : NEXT_MS;
    uint64_t since = uv_now(cluster->loop) - cluster->taken;
    if (cluster->has_map && since < SOON_MS && after < SOON_MS - since)
        after = SOON_MS - since;
    return after;
}

/* Nothing is open any more. */
static void wait_for_next(struct redis_cluster *cluster)
{
    if (cluster->state != CLOSED) {
        bool round_over = cluster->failed >= redis_cluster_candidates(cluster);
        cluster->state = WAITING;
        if (round_over) {
            cluster->failed = 0;
            cluster->rounds++;
            cluster->round_over = uv_now(cluster->loop);
        }
        start_timer(cluster, until_next(cluster, round_over));
        if (round_over && !cluster->settled) {
            cluster->settled = true;
            cluster->changed(cluster->changed_arg);
        }
    }
    release(cluster);
}

static void close_link(struct redis_cluster *cluster, enum state before)
{
    if (before == DIALING)
        dial_stop(&cluster->dial);
    else if (before == UP)
        wire_close(&cluster->wire);
}

/* For another. */
static void leave(struct redis_cluster *cluster)
{
    enum state before = cluster->state;
    uv_timer_stop(&cluster->timer);
    cluster->state = CLOSING;
    close_link(cluster, before);
}

static void lose(struct redis_cluster *cluster, const char *what, const char *why)
{
    note_failure(cluster, what, why);
    leave(cluster);
}

static void on_broken(void *arg, const char *why, bool is_protocol)
{
    (void)is_protocol;
    lose(arg, "", why);
}

static void on_wire_closed(void *arg)
{
    wait_for_next(arg);
}

/* ---- questions ---- */

static void say(struct redis_cluster *cluster, const char *const *words, size_t count)
{
    struct redis_command *command = redis_command_of(words, count);
    wire_append(&cluster->wire, command->wire, command->wire_length);
    redis_command_deliver(command, NULL, "");
}

static void ask_state(struct redis_cluster *cluster)
{
    uint64_t now = uv_now(cluster->loop);
    bool is_due = cluster->is_down || !cluster->stated || now - cluster->stated >= PULSE_MS;
    cluster->stating = cluster->states && now < cluster->troubled_until && is_due;
    if (!cluster->stating)
        return;
    say(cluster, (const char *[]){"CLUSTER", "INFO"}, 2);
    cluster->stated = now;
}

static void ask(struct redis_cluster *cluster)
{
    ask_state(cluster);
    say(cluster, (const char *[]){"CLUSTER", "SLOTS"}, 2);
    cluster->asking = true;
    cluster->wanted = false;
    cluster->asked = uv_now(cluster->loop);
    wire_flush(&cluster->wire);
    if (cluster->state == UP)
        start_timer(cluster, PATIENCE_MS);
}

static void wait_for_pulse(struct redis_cluster *cluster)
{
    uint64_t now = uv_now(cluster->loop);
    uint64_t pulse = now < cluster->troubled_until ? TROUBLED_MS : PULSE_MS;
    uint64_t due = cluster->asked + (cluster->wanted ? SOON_MS : pulse);
    start_timer(cluster, due > now ? due - now : 0);
}

/* ---- answers ---- */

/* Not every user may ask. */
static void take_state(struct redis_cluster *cluster, const struct redisReply *reply)
{
    bool is_text = reply->type == REDIS_REPLY_STRING;
    cluster->states = is_text;
    cluster->is_down = is_text && strstr(reply->str, "cluster_state:fail");
}

/* All others may have said the same just now. */
static void look_elsewhere(struct redis_cluster *cluster)
{
    uint64_t now = uv_now(cluster->loop);
    cluster->troubled_until = now + LASTING_MS;
    backoff_reset(&cluster->backoff);
    if (cluster->round_over && now - cluster->round_over < PULSE_MS)
        wait_for_pulse(cluster);
    else
        lose(cluster, "", "says that its cluster is down");
}

/* The address may be another cluster's by now. That the cluster was made anew is what a seed says
 * when nobody of the one before has been found in a whole round, or says that its cluster is up. */
static bool is_strange(const struct redis_cluster *cluster, const struct redisReply *reply)
{
    bool may_be_anew = cluster->is_seed && cluster->rounds != cluster->known_round;
    return cluster->has_map && !may_be_anew && !redis_map_is_akin(&cluster->map, reply);
}

static void take_map(struct redis_cluster *cluster, const struct redisReply *reply)
{
    const char *why;
    if (is_strange(cluster, reply)) {
        lose(cluster, "", "is of another cluster: it names none of the nodes known so far");
        return;
    }
    /* Before there is any map, one of a cluster that is down is better than none. */
    if (cluster->is_down && cluster->has_map) {
        redis_map_look_over(&cluster->map, reply, &cluster->place);
        look_elsewhere(cluster);
        return;
    }
    if (reply->type == REDIS_REPLY_ERROR) {
        lose(cluster, "refuses CLUSTER SLOTS: ", reply->str);
        return;
    }
    int status = redis_map_take(&cluster->map, reply, &cluster->place, &why);
    if (status < 0) {
        lose(cluster, "", why);
        return;
    }
    bool is_first = !cluster->has_map;
    cluster->settled = cluster->has_map = true;
    cluster->taken = uv_now(cluster->loop);
    cluster->failed = 0;
    cluster->known_round = cluster->rounds;
    cluster->why[0] = '\0';
    backoff_reset(&cluster->backoff);
    wait_for_pulse(cluster);
    if (status > 0 || is_first)
        cluster->changed(cluster->changed_arg);
}

static void on_reply(void *arg, const struct redisReply *reply)
{
    struct redis_cluster *cluster = arg;
    if (cluster->login_left) {
        cluster->login_left--;
        if (reply->type == REDIS_REPLY_ERROR)
            lose(cluster, "refuses the login: ", reply->str);
    } else if (cluster->stating) {
        cluster->stating = false;
        take_state(cluster, reply);
    } else if (cluster->asking) {
        cluster->asking = false;
        take_map(cluster, reply);
    } else {
        lose(cluster, "", "a reply that nothing was asked for");
    }
}

/* ---- connecting ---- */

static void log_in(struct redis_cluster *cluster)
{
    cluster->login_left = redis_login_steps(cluster->steps, &cluster->login);
    for (size_t i = 0; i < cluster->login_left; i++)
        say(cluster, cluster->steps[i].words, cluster->steps[i].count);
}

static void on_dialed(void *arg, const char *error)
{
    struct redis_cluster *cluster = arg;
    if (!error) {
        cluster->state = UP;
        wire_open(&cluster->wire);
        log_in(cluster);
        ask(cluster);
        return;
    }
    if (cluster->state == DIALING) {
        uv_timer_stop(&cluster->timer);
        note_failure(cluster, "cannot connect: ", error);
    }
    wait_for_next(cluster);
}

static void open_link(struct redis_cluster *cluster)
{
    cluster->place = redis_cluster_next_place(cluster);
    cluster->asking = cluster->stating = false;
    cluster->states = true;
    struct dial_options dial = {.host = cluster->place.host,
                                .port = cluster->place.port,
                                .tls = cluster->options.tls,
                                .turn = cluster->rounds};
    cluster->state = DIALING;
    cluster->handles++;
    start_timer(cluster, PATIENCE_MS);
    int status =
        dial_start(&cluster->dial, cluster->loop, &cluster->wire.stream, &dial, on_dialed, cluster);
    if (status < 0)
        on_dialed(cluster, uv_strerror(status));
}

static void on_timer(uv_timer_t *timer)
{
    struct redis_cluster *cluster = timer->data;
    if (cluster->state == WAITING)
        open_link(cluster);
    else if (cluster->state == UP && !cluster->asking)
        ask(cluster);
    else
        lose(cluster, "", "no answer in time");
}

/* ---- what others see ---- */

const struct redis_map *redis_cluster_map(const struct redis_cluster *cluster)
{
    return &cluster->map;
}

bool redis_cluster_is_settled(const struct redis_cluster *cluster)
{
    return cluster->settled;
}

const char *redis_cluster_why(const struct redis_cluster *cluster)
{
    return cluster->why;
}

void redis_cluster_refresh(struct redis_cluster *cluster)
{
    cluster->troubled_until = uv_now(cluster->loop) + LASTING_MS;
    redis_cluster_ask(cluster);
}

void redis_cluster_ask(struct redis_cluster *cluster)
{
    if (cluster->wanted || cluster->state == CLOSED)
        return;
    cluster->wanted = true;
    if (cluster->state == UP && !cluster->asking)
        wait_for_pulse(cluster);
}

/* Not by a connection to somebody else, unless that was opened for the same reason just now. */
static void ask_named(struct redis_cluster *cluster, const struct redis_place *place)
{
    if (redis_place_equal(&cluster->place, place) || cluster->state != UP || cluster->asking) {
        redis_cluster_refresh(cluster);
        return;
    }
    cluster->next = *place;
    leave(cluster);
}

int redis_cluster_number(struct redis_cluster *cluster, const struct redis_place *place)
{
    return redis_map_number(&cluster->map, place);
}

int redis_cluster_owner_at(struct redis_cluster *cluster, const struct redis_place *place)
{
    return redis_map_owns(&cluster->map, place) ? redis_map_number(&cluster->map, place) : -ENOENT;
}

int redis_cluster_follow(struct redis_cluster *cluster, const struct redis_redirect *redirect,
                         bool *changed)
{
    int number = redis_map_number(&cluster->map, &redirect->place);
    *changed = false;
    if (number < 0 || redirect->asks)
        return number;
    *changed = redis_map_move(&cluster->map, redirect->slot, number);
    if (*changed)
        ask_named(cluster, &redirect->place);
    else
        redis_cluster_refresh(cluster);
    return number;
}

void redis_cluster_drop(struct redis_cluster *cluster, int number)
{
    if (!cluster->map.nodes[number].slots)
        redis_map_drop(&cluster->map, number);
}

/* ---- life ---- */

static void copy_options(struct redis_cluster *cluster, const struct redis_cluster_options *options)
{
    cluster->options = *options;
    cluster->options.user = allocate_text(options->user);
    cluster->options.password = allocate_text(options->password);
    cluster->login =
        (struct redis_login){.user = cluster->options.user, .password = cluster->options.password};
    if (options->tls)
        tls_context_hold(options->tls);
    cluster->seeds = allocate(options->count, sizeof *cluster->seeds);
    for (size_t i = 0; i < options->count; i++)
        cluster->seeds[i] =
            (struct redis_seed){allocate_text(options->seeds[i].host), options->seeds[i].port};
    cluster->options.seeds = cluster->seeds;
}

struct redis_cluster *redis_cluster_create(uv_loop_t *loop,
                                           const struct redis_cluster_options *options,
                                           void (*changed)(void *arg), void *arg)
{
    struct redis_cluster *cluster = allocate(1, sizeof *cluster);
    cluster->loop = loop;
    cluster->changed = changed;
    cluster->changed_arg = arg;
    copy_options(cluster, options);
    redis_map_init(&cluster->map);
    cluster->wire = (struct redis_wire){.reply = on_reply,
                                        .broken = on_broken,
                                        .closed = on_wire_closed,
                                        .arg = cluster,
                                        .most = MOST_BYTES};
    cluster->turn = options->count - 1; /* the first seed is next */
    uv_timer_init(loop, &cluster->timer);
    cluster->timer.data = cluster;
    cluster->handles = 1;
    start_timer(cluster, 0);
    return cluster;
}

static void release(struct redis_cluster *cluster)
{
    if (--cluster->handles)
        return;
    void (*closed)(void *arg) = cluster->closed;
    void *arg = cluster->closed_arg;
    for (size_t i = 0; i < cluster->options.count; i++)
        free((char *)cluster->seeds[i].host);
    free(cluster->seeds);
    free((char *)cluster->options.user);
    free((char *)cluster->options.password);
    tls_context_release(cluster->options.tls);
    redis_map_finish(&cluster->map);
    free(cluster);
    if (closed)
        closed(arg);
}

static void on_timer_closed(uv_handle_t *timer)
{
    release(timer->data);
}

void redis_cluster_close(struct redis_cluster *cluster, void (*closed)(void *arg), void *arg)
{
    enum state before = cluster->state;
    cluster->state = CLOSED;
    cluster->closed = closed;
    cluster->closed_arg = arg;
    close_link(cluster, before);
    uv_close((uv_handle_t *)&cluster->timer, on_timer_closed);
}
