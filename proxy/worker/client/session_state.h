/* What a client has asked of its connection, as its commands left it; see session.h. */
#ifndef NESTGUARD_SESSION_STATE_H
#define NESTGUARD_SESSION_STATE_H

#include <stddef.h>
#include <stdint.h>

struct reply_slot;
struct upload;
struct upstream;

/* Bits. All but the last hold the own connection. */
enum session_state {
    SESSION_MULTI = 1 << 0, /* commands are queued: none is answered here */
    SESSION_WATCH = 1 << 1,
    SESSION_SUBSCRIBED = 1 << 2,
    SESSION_MONITOR = 1 << 3,
    SESSION_TRACKING = 1 << 4,
    SESSION_OTHER_DB = 1 << 5, /* other keys: nothing is guarded */
    SESSION_USER = 1 << 6,     /* logged in as a user of the cache's own */
    SESSION_ALTERED = 1 << 7,  /* in a way that is not followed: until RESET */
    SESSION_RELAY = 1 << 8,    /* bytes, no commands: replication */
    SESSION_UPLOAD = 1 << 9,   /* a command is passed on while it arrives */
    SESSION_SKIP = 1 << 10     /* the next command gets no reply */
};

struct session {
    unsigned states;
    struct upstream *own; /* NULL: the client shares */
    struct reply_slot
        *fence; /* stands before the first command for `own`, which is held until it leads */
    struct reply_slot *multi;            /* of the last MULTI, until its reply */
    struct upload *upload;               /* with SESSION_UPLOAD; else NULL */
    uint64_t used;                       /* clock_ms() when a command last needed `own` */
    unsigned channels, patterns, shards; /* subscribed to */
    struct reply_slot *subscribing;      /* of the last (UN)SUBSCRIBE */
    size_t awaited;                      /* messages that still answer it */
};

#endif
