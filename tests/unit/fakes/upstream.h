/* Connections to a cache that does what the test says: what is sent is kept for the test to look
 * at, and replies are those that it gives. They are up from the beginning, unless the test has
 * another word for that, and greet nobody. */
#ifndef NESTGUARD_FAKES_UPSTREAM_H
#define NESTGUARD_FAKES_UPSTREAM_H

#include "worker/upstream/upstream.h"

struct upstream {
    struct upstream *previous; /* created before this */
    struct upstream_options options;
    struct fake_request {
        struct reply_slot *slot;
        unsigned index;
        bool patient;
    } * in_flight; /* oldest first */
    size_t count, room;
    struct buffer out; /* what the test has not looked at yet */
    bool held, unread, congested, relays, down, doubted, closed;
    bool dialing; /* not up yet, but not lost either */
    uint64_t fresh, cache_id;
    const char *run_id;        /* NULL: its server does not say */
    upstream_standing_cb hear; /* of the last question how far it is; NULL: none is open */
    void *hear_arg;
};

/* The last that was created; NULL: none. */
extern struct upstream *last_upstream;

/* What is created from now on is not up before the test says so. */
extern bool upstreams_begin_down;

/* Exactly these bytes were sent since the last time. */
void must_send(struct upstream *upstream, const char *bytes);

/* A whole reply or push: the owner's, or else that of the oldest request. */
void cache_says(struct upstream *upstream, const char *reply);
/* The answer to the question how far it is; NULL: refused. */
void cache_stands(struct upstream *upstream, const char *text, uint64_t asked);
/* A piece of the reply to the oldest request. */
void cache_begins(struct upstream *upstream, const char *part);

/* Every request fails, and the owner hears of the loss. */
void cache_is_lost(struct upstream *upstream);

/* Frees all; requests without a reply fail. */
void upstreams_finish(void);

#endif
