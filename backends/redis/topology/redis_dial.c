/* That a server was no good is remembered twice. The topology, if there is one, does not name it
 * for a while unless there is no other; and `turn` has the next attempt begin with another address
 * of its name. `turn` alone is kept from one dialing to the next: all else begins anew.
 */
#include "redis/topology/redis_dial.h"

static void on_found(void *arg, const struct redis_place *place, const char *error)
{
    struct redis_dial *dial = arg;
    dial->finding = false;
    if (!place) {
        dial->done(dial->arg, error);
        return;
    }
    dial->place = *place;
    struct dial_options options = {.host = dial->place.host,
                                   .port = place->port,
                                   .tls = dial->target.fixed.tls,
                                   .turn = dial->turn};
    int status = dial_start(&dial->dial, dial->loop, dial->stream, &options, dial->done, dial->arg);
    if (status < 0)
        dial->done(dial->arg, uv_strerror(status));
}

int redis_dial_start(struct redis_dial *dial, uv_loop_t *loop, struct stream *stream,
                     const struct redis_target *target, dial_done_cb done, void *arg)
{
    *dial = (struct redis_dial){.target = *target,
                                .turn = dial->turn,
                                .stream = stream,
                                .loop = loop,
                                .done = done,
                                .arg = arg};
    dial->target.fixed.turn = dial->turn;
    if (!target->topology)
        return dial_start(&dial->dial, loop, stream, &dial->target.fixed, done, arg);
    dial->finding = true;
    dial->since = uv_now(loop);
    dial->search = (struct redis_search){.found = on_found, .arg = dial};
    redis_topology_find(target->topology, &dial->search);
    return 0;
}

void redis_dial_skip(struct redis_dial *dial, const char *why)
{
    if (dial->finding)
        redis_topology_cancel(dial->target.topology, &dial->search);
    else
        dial_skip(&dial->dial, why);
}

bool redis_dial_is_over(const struct redis_dial *dial)
{
    return !dial->finding && dial_is_over(&dial->dial);
}

/* Who stops may be about to close the topology, too. */
void redis_dial_stop(struct redis_dial *dial)
{
    if (dial->finding)
        redis_topology_cancel(dial->target.topology, &dial->search);
    else
        dial_stop(&dial->dial);
    dial->target.topology = NULL;
}

void redis_dial_distrust(struct redis_dial *dial)
{
    dial->turn++;
    if (dial->target.topology && dial->place.host[0])
        redis_topology_distrust(dial->target.topology, &dial->place);
}

bool redis_dial_is_outdated(const struct redis_dial *dial)
{
    return dial->target.topology && dial->place.host[0] &&
           redis_topology_has_moved(dial->target.topology, &dial->place);
}
