/* What a client has asked of its connection, and the connection to the cache that it then has of
 * its own.
 *
 *   shared ──MULTI, SUBSCRIBE, BLPOP, SELECT of another db, ...──▶ own
 *     ◀───── no such state is left, and none was needed for a while ────
 *
 * While it has one, all its commands go over it: order needs no more thought.
 */
#ifndef NESTGUARD_SESSION_H
#define NESTGUARD_SESSION_H

#include "slot.h"

struct client;
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
    struct slot
        *fence; /* stands before the first command for `own`, which is held until it leads */
    struct slot *multi;                  /* of the last MULTI, until its reply */
    struct upload *upload;               /* with SESSION_UPLOAD; else NULL */
    uint64_t used;                       /* clock_ms() when a command last needed `own` */
    unsigned channels, patterns, shards; /* subscribed to */
    struct slot *subscribing;            /* of the last (UN)SUBSCRIBE */
    size_t awaited;                      /* messages that still answer it */
};

/* Gives the client a connection of its own, to which all that it sends from now on goes. 0, or
 * -EBUSY: own_connections are used up; then it has got the error as its reply. */
int session_begin(struct client *client);

/* Goes back to a shared connection. Nothing is under way on its own. */
void session_end(struct client *client);

/* As a new client, but for the name: RESET. */
void session_reset(struct client *client);

/* The client is at the end of a turn: its own connection may go on once it is its turn. */
void session_flush(struct client *client);

/* What could be written is written: the own connection is read from, or waits for a client that
 * does not read. */
void session_pace(struct client *client);

/* Once in a while: ends what has taken too long, and what is not needed any more. */
void session_check(struct client *client, uint64_t now);

/* The client goes, and its replies are abandoned. */
void session_finish(struct client *client);

/* Something may come at any time, or never: with a client that has closed its sending side there is
 * no point in waiting for that. */
bool session_waits(const struct client *client);

/* How many subscriptions of its kind an UNSUBSCRIBE, PUNSUBSCRIBE or SUNSUBSCRIBE may end. */
unsigned session_subscriptions(const struct session *session, const char *name);

/* SESSION_RELAY: the client's bytes, to the cache as they are. */
size_t session_relay(struct client *client, const char *input, size_t length);

#endif
