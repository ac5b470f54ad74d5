/* CLOSED ─▶ DIALING ─▶ GREETING: from the cache's name to a connection that speaks. */
#include "worker/upstream/upstream_internal.h"

#include "base/clock.h"
#include "cache/cache_target.h"
#include "cache/greeting.h"

/* How many replies come behind the one that tells the role. */
unsigned upstream_facts(const struct upstream *upstream)
{
    if (upstream_is_own(upstream))
        return 2 + upstream->options.opening_commands;
    if (upstream->options.replica)
        return 1 + (upstream->route->cluster != NULL);
    return 2 + CACHE_LIMITS;
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
    if (!upstream->options.replica)
        greeting_write_server(&upstream->greeting);
    if (upstream->options.opening.length)
        buffer_append(&upstream->greeting, upstream->options.opening.at,
                      upstream->options.opening.length);
    if (upstream_is_own(upstream))
        greeting_write_id(&upstream->greeting);
    else
        write_shared(upstream);
    left += upstream_facts(upstream);
    /* Numbered downwards: each answer says how many are still to come, as greeted() wants it. */
    while (left)
        upstream_push(upstream, NULL, --left);
    in_flight_rotate(&upstream->in_flight, requests);
}

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
