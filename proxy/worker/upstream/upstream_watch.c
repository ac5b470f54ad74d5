/* What no event tells of a connection: that its server is a primary no more, or silent. And what
 * others ask of it. */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "cache/greeting.h"
#include "redis/topology/redis_map.h"
#include "worker/upstream/pool.h"
#include "worker/upstream/standing_text.h"

#include <stdlib.h>

enum { ROLE_MS = 1000 }; /* from one question for the server's role to the next */

/* A large reply may take its time, as long as it comes, and a large command, as long as it leaves;
 * and what its owner does not read cannot. */
static bool is_silent(const struct upstream *upstream, uint64_t asked, uint64_t patience)
{
    uint64_t since = upstream->heard > asked ? upstream->heard : asked;
    return upstream_is_reading(upstream) && !upstream->held &&
           uv_now(&upstream->serving->loop) - since > patience;
}

static void ask(struct upstream *upstream, unsigned asked)
{
    upstream->asking_role = true;
    upstream->role_asked = clock_ms();
    upstream_push_command(upstream, NULL, asked, 0);
}

void upstream_ask_role(struct upstream *upstream)
{
    if (upstream->asking_role)
        return;
    ask(upstream, ASKED_ROLE);
    greeting_write_role(&upstream->out);
    upstream_mark_dirty(upstream);
}

/* ---- whether anybody is there ---- */

/* Of a node's role the map tells. What is heard meanwhile, or is due, says as much. */
static void ask_to_answer(struct upstream *upstream)
{
    const struct span word = span_of("PING");
    if (upstream->in_flight.count || !upstream_is_reading(upstream) ||
        uv_now(&upstream->serving->loop) - upstream->heard <= ROLE_MS)
        return;
    ask(upstream, ASKED_TO_ANSWER);
    resp_write_command(&upstream->out, &word, 1);
    upstream_mark_dirty(upstream);
}

/* A status, an error or, as to who listens in RESP2, two words. No message has two. */
bool upstream_takes_pong(struct upstream *upstream, struct span frame)
{
    const struct in_flight *first = in_flight_first(&upstream->in_flight);
    bool is_pong = first && !first->slot && first->index == ASKED_TO_ANSWER &&
                   upstream->state == UP &&
                   (strchr("+-", frame.at[0]) || span_starts(frame, "*2\r\n"));
    if (is_pong)
        upstream->asking_role = false;
    return is_pong;
}

/* ---- how far it is ---- */

void upstream_ask_standing(struct upstream *upstream, upstream_standing_cb hear, void *arg)
{
    const struct span words[] = {span_of("INFO"), span_of("replication")};
    if (upstream->standing_asked || upstream->state != UP || upstream->tenure == TENURE_FINISHED)
        return;
    upstream->hear = hear;
    upstream->hear_arg = arg;
    upstream->standing_asked = clock_ms();
    upstream_push_command(upstream, NULL, ASKED_STANDING, 0);
    resp_write_command(&upstream->out, words, 2);
    upstream_mark_dirty(upstream);
}

void upstream_take_standing(struct upstream *upstream, struct span reply)
{
    uint64_t asked = upstream->standing_asked;
    char *text = standing_text(reply);
    upstream->standing_asked = 0;
    upstream->hear(upstream->hear_arg, upstream, text, asked);
    free(text);
}

void upstream_set_fresh(struct upstream *upstream, uint64_t fresh)
{
    upstream->fresh = fresh;
}

uint64_t upstream_fresh(const struct upstream *upstream)
{
    return upstream->fresh;
}

/* ---- the role ---- */

static void ask_what_is_due(struct upstream *upstream)
{
    const struct upstream_options *options = &upstream->options;
    if (!upstream_is_own(upstream))
        upstream_ask_role(upstream);
    else if (options->owner->may_ping && options->owner->may_ping(options->client, upstream))
        ask_to_answer(upstream);
}

/* What waits for something at a node does so for nothing once that has no slots: another, which has
 * them now, may have what is waited for, and the node may hang. */
static bool waits_in_vain(const struct upstream *upstream)
{
    return upstream->options.node && upstream_is_waiting(upstream) &&
           !redis_map_owns(pool_map(upstream->route->pool), &upstream->node);
}

static void ask_role_now(struct upstream *upstream)
{
    if (upstream->state == UP && !upstream->options.node)
        upstream_ask_role(upstream);
}

/* One shared connection finds it out. Clients' own are given up, also those that only wait for
 * something (check_role()); other shared ones may be at another server by now, and are asked. */
void upstream_note_demotion(struct upstream *upstream)
{
    struct cache_route *route = upstream->route;
    route->demotions++;
    if (route->pool)
        pool_each(route->pool, ask_role_now);
}

static void check_role(struct upstream *upstream)
{
    if (upstream->state == CLOSED || upstream->state == CLOSING || upstream->options.replica)
        return;
    if (redis_dial_is_outdated(&upstream->dial))
        upstream_lose(upstream, "the sentinels name another primary");
    else if (upstream_is_own(upstream) && !upstream->options.node &&
             upstream->demotions != upstream->route->demotions)
        upstream_lose(upstream, "its server is no primary any more");
    else if (upstream_is_own(upstream) && waits_in_vain(upstream))
        upstream_lose(upstream, "its node has no slots any more");
    else if (upstream->state == UP && clock_ms() - upstream->role_asked > ROLE_MS)
        ask_what_is_due(upstream);
}

void upstream_moved(struct upstream *upstream)
{
    backoff_reset(&upstream->backoff);
    if (upstream->state == CLOSED && uv_is_active((uv_handle_t *)&upstream->timer))
        upstream_retry_now(upstream);
    else
        check_role(upstream);
}

/* What a replica does not answer for so long its primary is asked for. */
static uint64_t patience_of(const struct upstream *upstream)
{
    const struct config *config = serving_config(upstream->serving);
    bool hurries = upstream->options.replica && config->cache_max_lag_ms < config->cache_timeout_ms;
    return hurries ? config->cache_max_lag_ms : config->cache_timeout_ms;
}

/* Whoever takes bytes is there. */
static void note_taken(struct upstream *upstream)
{
    size_t queued = upstream->state == UP ? stream_queued(&upstream->stream) : 0;
    if (queued < upstream->queued)
        upstream->heard = uv_now(&upstream->serving->loop);
    upstream->queued = queued;
}

void upstream_check_progress(struct upstream *upstream)
{
    static const char no_connection[] = "no connection within cache_timeout";
    uint64_t patience = patience_of(upstream);
    upstream_review_server(upstream);
    note_taken(upstream);
    uint64_t now = uv_now(&upstream->serving->loop);
    uint64_t asked = in_flight_oldest(&upstream->in_flight);
    if (upstream->state == DIALING && now - redis_dial_since(&upstream->dial) > patience) {
        if (redis_dial_is_resolving(&upstream->dial))
            upstream_stop_waiting(upstream);
        redis_dial_skip(&upstream->dial, no_connection);
    } else if (upstream->state == GREETING && clock_ms() - upstream->since > patience) {
        upstream_lose(upstream, no_connection);
    } else if (upstream->state == UP && asked && is_silent(upstream, asked, patience)) {
        upstream_lose(upstream, "no reply within cache_timeout");
    } else {
        check_role(upstream);
    }
}

/* ---- what others ask ---- */

const struct redis_place *upstream_node(const struct upstream *upstream)
{
    return upstream->options.node;
}

bool upstream_is_nowhere(const struct upstream *upstream)
{
    return upstream->options.nowhere;
}

struct cache_route *upstream_route(const struct upstream *upstream)
{
    return upstream->route;
}

bool upstream_is_up(const struct upstream *upstream)
{
    return upstream->state == UP;
}

/* A server that is not what it should be is greeted again and again. */
bool upstream_is_idle(const struct upstream *upstream)
{
    return !in_flight_first_slot(&upstream->in_flight) && !upstream->failed.count;
}

bool upstream_awaits_reply(const struct upstream *upstream)
{
    return upstream->in_flight.count > upstream->gathered;
}

bool upstream_is_lost(const struct upstream *upstream)
{
    return upstream->state != UP && upstream->attempt == ATTEMPT_OVER;
}

void upstream_give_up(struct upstream *upstream, const char *why)
{
    upstream_lose(upstream, why);
}
