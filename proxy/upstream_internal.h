/* Between the parts of an upstream.
 *
 *   upstream.c          requests and replies on a connection, and its end
 *   upstream_connect.c  how a connection comes about
 */
#ifndef NESTGUARD_UPSTREAM_INTERNAL_H
#define NESTGUARD_UPSTREAM_INTERNAL_H

#include "pending.h"
#include "stream.h"
#include "upstream.h"

enum state { CLOSED, RESOLVING, CONNECTING, GREETING, UP, CLOSING };

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
    uv_getaddrinfo_t resolve;
    struct addrinfo *found, *next; /* addresses of the cache's name, and the one to try next */
    uv_connect_t connect;
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

/* When the stream is closed, the next address is tried, if there is one. */
void upstream_close_stream(struct upstream *upstream);

/* Connected, and the greeting is in its buffer. */
void upstream_begin(struct upstream *upstream);

/* From CLOSED: looks the cache's name up and connects. */
void upstream_start(struct upstream *upstream);
void upstream_connect_next(struct upstream *upstream);
void upstream_connect_failed(struct upstream *upstream, const char *why);
void upstream_forget_addresses(struct upstream *upstream);

#endif
