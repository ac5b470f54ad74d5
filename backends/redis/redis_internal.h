/* Between the parts of a struct redis. Private to backends/.
 *
 *   redis_connection.c  the connection's states, and what is sent and answered over it
 *   redis_requests.c    what is asked for, and what is told of it
 */
#ifndef NESTGUARD_REDIS_INTERNAL_H
#define NESTGUARD_REDIS_INTERNAL_H

#include "net/backoff.h"
#include "redis/protocol/redis_wire.h"
#include "redis/redis.h"
#include "redis/redis_greeting.h"
#include "redis/topology/redis_dial.h"

enum link_state { LINK_WAITING, LINK_DIALING, LINK_GREETING, LINK_UP, LINK_CLOSING, LINK_CLOSED };

struct redis_fleet; /* redis_fleet.h */

struct redis {
    uv_loop_t *loop;
    struct redis_options options; /* with texts of its own */
    redis_state_cb state_cb;
    void *state_arg;
    enum link_state state;
    struct redis_topology *topology; /* NULL: the address is fixed */
    struct redis_fleet *fleet; /* not NULL: it stands for a cluster, and connects to nothing */
    struct redis_dial dial;
    struct redis_wire wire;
    struct redis_greeting greeting;
    struct redis_commands waiting; /* for the first connection */
    struct redis_commands sent;    /* in the order of their replies */
    struct redis_commands ended;   /* without a reply; to be told */
    uv_timer_t timer;              /* backoff, the limit for connecting, or the oldest deadline */
    uv_timer_t pulse;              /* while the connection is up: asks for the server's role */
    uv_idle_t idle;                /* runs while something is to be told or written */
    unsigned handles; /* not yet closed: timers, idle, and what dial or wire has open */
    struct backoff backoff;
    bool is_new;         /* no attempt to connect has ended yet */
    bool told_down;      /* state_cb need not say it again */
    bool late;           /* the oldest deadline has passed; its reply may be in the socket */
    bool asking_role;    /* its answer is still to come */
    uint64_t down_since; /* by the loop's clock, while it is not up */
    bool is_full;        /* `trouble` is of writes only, and over when one succeeds */
    char reason[256];    /* why it is, or was last, down */
    char trouble[160];   /* what the server that is up complained of last; "": of nothing */
    void (*closed)(void *arg);
    void *closed_arg;
};

/* Sends it, lets it wait, or ends it. */
void redis_submit(struct redis *redis, struct redis_command *command, redis_answer_cb done,
                  void *arg);

#endif
