/* CLOSED ─▶ DIALING ─▶ GREETING: from the cache's name to a connection that speaks. */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "cache/cache_target.h"
#include "cache/greeting.h"
#include "redis/topology/redis_cluster.h"

#include <errno.h>
#include <stdio.h>

enum { BUSY_MS = 100 }; /* until a busy cache is greeted again */

/* ---- the questions ---- */

/* How many replies come behind the one that tells the role. */
static unsigned facts_of(const struct upstream *upstream)
{
    unsigned facts = upstream->asks_node ? 1 : 0;
    if (upstream_is_own(upstream))
        return facts + 2 + upstream->options.opening_commands;
    if (upstream->options.replica)
        return facts + 1 + (upstream->route->cluster != NULL);
    return facts + 2 + CACHE_LIMITS;
}

/* What everybody shares is to stay. */
static void write_shared(struct upstream *upstream)
{
    greeting_write_stay(&upstream->greeting);
    if (!upstream->options.replica)
        greeting_write_limits(&upstream->greeting);
    else if (upstream->route->cluster)
        resp_write_command(&upstream->greeting, (struct span[]){span_of("READONLY")}, 1);
}

/* Requests may be waiting already: the answers to the greeting come before theirs. */
void upstream_greet(struct upstream *upstream)
{
    upstream->in_trouble = false;
    upstream->run_id[0] = '\0';
    upstream->since = clock_ms();
    const struct cache_url *cache = &upstream->route->config->cache;
    size_t requests = upstream->in_flight.count;
    unsigned left =
        greeting_write(&upstream->greeting, cache, upstream->options.resp3, upstream->options.name);
    upstream->asks_node = upstream->route->cluster && upstream->options.node;
    if (upstream->asks_node)
        greeting_write_node(&upstream->greeting);
    if (!upstream->options.replica)
        greeting_write_server(&upstream->greeting);
    if (upstream->options.opening.length)
        buffer_append(&upstream->greeting, upstream->options.opening.at,
                      upstream->options.opening.length);
    if (upstream_is_own(upstream))
        greeting_write_id(&upstream->greeting);
    else
        write_shared(upstream);
    upstream->facts = facts_of(upstream);
    left += upstream->facts;
    /* Numbered downwards: each answer says how many are still to come, as upstream_greeted() wants
     * it. */
    while (left)
        upstream_push(upstream, NULL, --left);
    in_flight_rotate(&upstream->in_flight, requests);
}

/* ---- the answers ---- */

static void on_greet_again(uv_timer_t *timer)
{
    struct upstream *upstream = timer->data;
    upstream_greet(upstream);
    upstream_mark_dirty(upstream);
}

static void come_up(struct upstream *upstream)
{
    upstream_set_state(upstream, UP);
    upstream->attempt = ATTEMPT_OVER;
    upstream->trouble[0] = '\0';
    upstream->role_asked = clock_ms();
    backoff_reset(&upstream->backoff);
    upstream_judge_server(upstream);
    if (upstream->state != UP)
        return;
    upstream_mark_dirty(upstream);
    upstream_follow_intake(upstream, true);
    const struct upstream_options *options = &upstream->options;
    if (upstream_is_own(upstream) && options->owner->up && upstream->tenure != TENURE_FINISHED)
        options->owner->up(options->client, upstream);
}

/* Connected, and of no use for now: its requests get the cache's own word for that. Only one whose
 * every reply was good has selected the right database. */
static void stay_in_trouble(struct upstream *upstream)
{
    upstream_log(upstream, upstream->trouble);
    if (upstream_is_own(upstream)) {
        upstream_lose(upstream, upstream->trouble);
        return;
    }
    upstream_fail_waiting(upstream);
    uv_timer_start(&upstream->timer, on_greet_again, BUSY_MS, 0);
}

static void note_trouble(struct upstream *upstream, struct span reply)
{
    int length = reply.length > 3 ? (int)reply.length - 3 : 0;
    upstream->in_trouble = true;
    snprintf(upstream->trouble, sizeof upstream->trouble, "%.*s", length, reply.at + 1);
}

/* To the first question behind ROLE of a cluster's node. */
static bool is_stranger(const struct upstream *upstream, unsigned left, struct span reply)
{
    const struct redis_cluster *cluster = upstream->route->cluster;
    if (!cluster || !upstream->asks_node || left + 1 != upstream->facts)
        return false;
    struct span id = greeting_read_node(reply);
    return redis_map_is_stranger(redis_cluster_map(cluster), &upstream->node, id.at, id.length);
}

/* Of a cluster's node the first is taken by is_stranger(): one that cannot tell for now is greeted
 * again. The next tells which server it is;
 * behind it on a shared connection comes whether it may stay, which changes nothing, and then
 * limits; the last on an own one tells what that is called. A replica that does not know READONLY
 * is none of a cluster, and will say so. */
static bool takes_fact(struct upstream *upstream, unsigned left, struct span reply)
{
    unsigned facts = upstream->facts;
    if (left >= facts || upstream->options.replica)
        return left < facts;
    if (upstream->asks_node && left == --facts)
        return !greeting_is_passing_trouble(reply);
    if (left == facts - 1) {
        greeting_read_run_id(upstream->run_id, reply);
        return true;
    }
    if (upstream_is_own(upstream) && left)
        return false; /* of `opening`, which must not fail */
    if (upstream_is_own(upstream)) {
        upstream->cache_id = greeting_read_id(reply);
        return true;
    }
    if (left >= CACHE_LIMITS || greeting_is_passing_trouble(reply))
        return true;
    enum cache_limit limit = (enum cache_limit)(CACHE_LIMITS - 1 - left);
    struct serving *serving = upstream->serving;
    *(limit == LIMIT_BULK ? &serving->cache_bulk : &serving->cache_clients) =
        greeting_read_limit(limit, reply);
    serving_update_limits(serving);
    return true;
}

/* The answer to ROLE, which may be refused: it is not for everybody. */
static bool tells_role(const struct upstream *upstream, unsigned left)
{
    return left == upstream->facts;
}

/* Behind AUTH and SELECT, and before the name and ROLE. */
static bool answers_hello(const struct upstream *upstream, unsigned left)
{
    return upstream->options.resp3 && left == upstream->facts + (upstream->options.name ? 2 : 1);
}

void upstream_greeted(struct upstream *upstream, unsigned left, struct span reply)
{
    char why[160];
    bool is_fact = takes_fact(upstream, left, reply);
    int verdict = is_fact ? 0 : greeting_judge(reply, answers_hello(upstream, left));
    bool tells = tells_role(upstream, left);
    const char *objection = tells ? greeting_judge_role(reply) : NULL;
    if (upstream->options.replica && objection != greeting_out_of_step)
        objection = NULL;
    if (is_stranger(upstream, left, reply))
        objection = redis_stranger_text;
    if (verdict == -EBUSY)
        note_trouble(upstream, reply);
    if (verdict == -EBUSY || tells)
        verdict = 0;
    if (objection) {
        upstream_lose(upstream, objection);
    } else if (verdict == -EPROTONOSUPPORT) {
        upstream->attempt = ATTEMPT_TOO_OLD;
        upstream_lose(upstream, "the cache does not know RESP3");
    } else if (verdict == -EPROTO) {
        upstream_lose(upstream, greeting_out_of_step);
    } else if (verdict) {
        snprintf(why, sizeof why, "the cache refused the greeting: %.*s", (int)reply.length - 3,
                 reply.at + 1);
        upstream_lose(upstream, why);
    } else if (!left && upstream->in_trouble && !upstream->is_urgent) {
        stay_in_trouble(upstream);
    } else if (!left) {
        come_up(upstream);
    }
}

/* ---- connecting ---- */

/* When it was given up meanwhile, this is the end of it. */
static void on_dialed(void *arg, const char *error)
{
    struct upstream *upstream = arg;
    if (!error) {
        upstream->stream.handle.data = upstream;
        upstream_set_state(upstream, GREETING);
        upstream_greet(upstream);
        upstream_begin(upstream);
    } else if (upstream->state == DIALING) {
        upstream_lose(upstream, error);
    } else {
        upstream_set_state(upstream, CLOSED);
        upstream_closed(upstream);
    }
}

/* Where the cache is may be another place each time: the target is asked for anew. */
void upstream_start(struct upstream *upstream)
{
    const struct cache_route *route = upstream->route;
    struct redis_target target = cache_target(route->config, route->topology);
    if (upstream->options.node)
        target = (struct redis_target){.fixed = {.host = upstream->node.host,
                                                 .port = upstream->node.port,
                                                 .tls = route->config->cache_tls}};
    upstream_set_state(upstream, DIALING);
    int status = redis_dial_start(&upstream->dial, &upstream->serving->loop, &upstream->stream,
                                  &target, on_dialed, upstream);
    if (status < 0)
        upstream_lose(upstream, uv_strerror(status));
}
