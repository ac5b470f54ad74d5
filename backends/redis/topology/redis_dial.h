/* From what the configuration calls the cache to an open stream to one server: at a fixed address,
 * or at the one that sentinels name.
 *
 *   redis_dial_start() ─▶ [finding (redis_topology.h)] ─▶ dialing (net/dial.h) ─▶ done()
 */
#ifndef NESTGUARD_REDIS_DIAL_H
#define NESTGUARD_REDIS_DIAL_H

#include "net/dial.h"
#include "redis/topology/redis_topology.h"

/* All of it outlives the dialing. */
struct redis_target {
    struct redis_topology *topology; /* NULL: the address is fixed */
    struct dial_options fixed;       /* with a topology only `tls` counts */
};

/* Part of its owner, and of the owner's alone until done() was called. */
struct redis_dial {
    struct redis_target target;
    struct redis_place place; /* with a topology: where it leads; host "" before that is known */
    unsigned turn;            /* kept from one dialing to the next; see dial_options */
    uint64_t since;           /* uv_now() when finding began; later, and without: dial.since */
    bool finding;
    struct dial dial;
    struct redis_search search;
    struct stream *stream;
    uv_loop_t *loop;
    dial_done_cb done;
    void *arg;
};

/* As dial_start(). Zeroed before the first, and then used for one connection after the other. */
int redis_dial_start(struct redis_dial *dial, uv_loop_t *loop, struct stream *stream,
                     const struct redis_target *target, dial_done_cb done, void *arg);

/* As the functions of these names without "redis_". Finding is broken off like a last address. */
void redis_dial_skip(struct redis_dial *dial, const char *why);
bool redis_dial_is_over(const struct redis_dial *dial);
void redis_dial_stop(struct redis_dial *dial);

/* A look-up of a name, which cannot be broken off. */
static inline bool redis_dial_is_resolving(const struct redis_dial *dial)
{
    return !dial->finding && dial->dial.state == DIAL_RESOLVING;
}

/* uv_now() when this step of it began. */
static inline uint64_t redis_dial_since(const struct redis_dial *dial)
{
    return dial->finding ? dial->since : dial->dial.since;
}

/* The server that it leads to, and that was reached, is no primary, or does not answer; or it was
 * not reached: another attempt tries another, if any sentinel knows one, or the name's next
 * address. Said by the owner, and once an attempt: said twice, of two addresses the same is next.
 */
void redis_dial_distrust(struct redis_dial *dial);

/* Most sentinels name another server by now. */
bool redis_dial_is_outdated(const struct redis_dial *dial);

#endif
