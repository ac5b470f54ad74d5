/* Between the parts of an upstream.
 *
 *   upstream.c          requests and replies on a connection, and its end
 *   upstream_connect.c  how a connection comes about
 */
#ifndef NESTGUARD_UPSTREAM_INTERNAL_H
#define NESTGUARD_UPSTREAM_INTERNAL_H

#include "dial.h"
#include "pending.h"
#include "upstream.h"

enum state { CLOSED, DIALING, GREETING, UP, CLOSING };

struct upstream {
    struct stream stream;
    struct serving *serving;
    struct turn_task task;
    enum state state;
    bool tried; /* an attempt has come to its end: from now on requests do not wait for the next */
    bool again; /* closed while idle: connects without delay, and requests wait for it */
    bool writing;
    bool finishing;
    bool resp3;
    bool too_old; /* the cache does not know RESP3: asked again when somebody wants it again */
    uint64_t backoff_ms, since;
    uv_timer_t timer;
    struct dial dial;
    uv_write_t write;
    struct buffer greeting, in, out, sending;
    struct resp_frame frame;
    struct pending_queue pending;
    struct pending_queue failed; /* to be told at the end of this turn */
};

/* Asserts that the move is legal. */
void upstream_set_state(struct upstream *upstream, enum state state);

/* Another reply is expected, to the slot's request or (NULL) to the greeting. */
void upstream_push(struct upstream *upstream, struct slot *slot, unsigned index);
void upstream_mark_dirty(struct upstream *upstream);

/* Gives the connection, or the attempt to connect, up. */
void upstream_lose(struct upstream *upstream, const char *why);

/* CLOSED: nothing is open. */
void upstream_closed(struct upstream *upstream);

/* Connected, and the greeting is in its buffer. */
void upstream_begin(struct upstream *upstream);

/* From CLOSED: connects. */
void upstream_start(struct upstream *upstream);

#endif
