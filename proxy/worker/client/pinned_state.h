/* What a client has asked of its connection, as its commands left it; see pinned.h. */
#ifndef NESTGUARD_PINNED_STATE_H
#define NESTGUARD_PINNED_STATE_H

#include "base/buffer.h"
#include "worker/client/redirection.h"
#include <stdint.h>

struct client;
struct listening;
struct pool;
struct reply_slot;
struct upload;
struct upstream;
struct upstream_owner;

/* Bits. All but the last two hold the own connection, and in a cluster all but PINNED_TRACKING. */
enum pinned_state {
    PINNED_MULTI = 1 << 0, /* commands are queued: none is answered here */
    PINNED_WATCH = 1 << 1,
    PINNED_SUBSCRIBED = 1 << 2,
    PINNED_MONITOR = 1 << 3,
    PINNED_TRACKING = 1 << 4,
    PINNED_OTHER_DB = 1 << 5, /* other keys: nothing is guarded */
    PINNED_USER = 1 << 6,     /* logged in as a user of the cache's own */
    PINNED_ALTERED = 1 << 7,  /* in a way that is not followed: until RESET */
    PINNED_RELAY = 1 << 8,    /* replication, or its refusal (relaying.h) */
    PINNED_UPLOAD = 1 << 9,   /* a command is passed on while it arrives */
    PINNED_SKIP = 1 << 10,    /* the next command gets no reply */
    PINNED_LISTENS = 1 << 11  /* in a cluster: to channels, over connections of listening.h */
};

/* How a WAIT that goes on is to end, with the next word of a primary. */
enum wait_end {
    WAIT_BY_ITSELF,
    WAIT_TIMED_OUT, /* as if its time was over */
    WAIT_UNBLOCKED  /* with an error */
};

/* What WAIT asks of one primary. */
struct pinned_wait {
    struct upstream *upstream; /* NULL: it has answered, or failed */
    uint64_t offset;           /* that replicas are to have acknowledged */
    uint64_t until;            /* clock_ms() */
    unsigned pause;            /* until they are counted again; 0: nothing is known yet */
};

/* One of a client that tracks in a cluster (tracking.h). */
struct pinned_track {
    struct upstream *upstream;
    bool outdated; /* nothing is sent on it any more, and it goes when nothing is under way there */
};

/* How CLIENT TRACKING is to be, or is. */
struct pinned_tracking_words {
    bool broadcast, opts_in, opts_out;
    struct buffer bytes; /* the command, or those that made it so; empty: none */
    unsigned commands;
};

enum pinned_caching { CACHING_UNSAID, CACHING_YES, CACHING_NO };

/* In a cluster; zeroed: it does not track. */
struct pinned_tracking {
    struct pinned_track *at;
    unsigned count;
    struct pinned_tracking_words words, asked; /* asked: by the last CLIENT TRACKING */
    enum pinned_caching caching;               /* said of the next command */
    struct reply_slot *beginning;       /* of that CLIENT TRACKING, until every node has agreed */
    const struct upstream_owner *owner; /* of each */
    bool unsettled;                     /* nodes are others, or a connection was lost */
    uint64_t tried;                     /* clock_ms() when what was missing was last connected to */
};

/* What the cache has said of the client's next command, which the table does not name
 * (unnamed.h). */
enum asked_state {
    ASKED_NOTHING, /* it was not asked, or what it said is kept with the pool */
    ASKED_NO_KEY,
    ASKED_KEY,    /* `text` is the first */
    ASKED_REFUSED /* `text` is the error that the command gets */
};

struct pinned_asked {
    enum asked_state state;
    const struct pool *pool; /* whose cache it was */
    struct buffer text;      /* until it has answered: the command's name */
};

/* Where the state began (footing.h). */
struct pinned_footing {
    /* While its beginning is the only command under way: upstream_owner's; else NULL. */
    struct upstream *(*elsewhere)(struct client *client, struct upstream *upstream, int node,
                                  bool *asks);
    bool has_slot;
    bool asks; /* its slot is on its way to the node that it began at */
    unsigned slot;
    uint64_t key;                       /* keymap_hash() of the first */
    void (*say)(struct client *client); /* what stands before the beginning; NULL: nothing */
};

struct pinned {
    unsigned states;
    struct pinned_footing footing;
    struct pinned_asked asked;
    struct pinned_tracking tracking;
    struct listening *listening; /* listening.h; NULL: it has not listened for a while */
    struct upstream *hears;      /* one of its connections; NULL: it has none */
    struct upstream *own;        /* NULL: the client shares */
    bool is_login;               /* `own` is only for asking the cache who the client is */
    struct reply_slot
        *fence; /* stands before the first command for `own`, which is held until it leads */
    /* For a WAIT: over `own`; in a cluster over one to each primary, with a fence, too. */
    struct pinned_wait *waits;
    unsigned wait_count, waiting;       /* waiting: that are left */
    uint64_t wait_replicas, wait_limit; /* how many; and for so many ms: 0: for ever */
    bool wait_is_counted;               /* else each primary waits by itself */
    enum wait_end wait_end;
    struct reply_slot *wait_fence;
    struct reply_slot *wait_slot; /* of the WAIT, while any is left; each one's answer is a part */
    struct reply_slot *watching;  /* of the only WATCH, until its reply */
    struct reply_slot *multi;     /* of the last MULTI, until its reply */
    unsigned queued;              /* commands since, as the cache counts them if none is refused */
    bool tells;                   /* one of them tells of rows */
    bool clears;                  /* one deletes all keys, or they many */
    unsigned clearings;           /* of its own, at the cache: all fills wait for them */
    struct buffer deleted;        /* else keys that they do, each with its length before it */
    bool remakes;                 /* guarded keys are written after these, and may be the same */
    struct buffer written;        /* keys that they make (queued_writes.h) */
    size_t begun;                 /* bytes of it, of those whose write has begun */
    bool forgets;                 /* they make more than are in it */
    struct buffer late;           /* in a cluster: of these, until the node of MULTI is certain */
    int db, asked_db;             /* with PINNED_OTHER_DB: which; by the last SELECT */
    bool caching;                 /* CLIENT CACHING was said there of the next command */
    uint64_t redirect;            /* with PINNED_TRACKING: another client's id; 0: none */
    uint64_t asked_redirect;      /* by the last CLIENT TRACKING */
    struct redirection *redirection, *asked_redirection; /* theirs, which are kept by that */
    struct redirection *redirected;      /* of `own`, by others; NULL: it never was */
    struct upload *upload;               /* with PINNED_UPLOAD; else NULL */
    uint64_t used;                       /* clock_ms() when a command last needed `own` */
    unsigned channels, patterns, shards; /* subscribed to */
    struct reply_slot *subscribing;      /* of the last (UN)SUBSCRIBE */
    size_t awaited;                      /* messages that still answer it */
};

/* Whether there is state on the own connection, or others redirect to it. Where tracking has
 * connections of its own it needs none besides, and listening in a cluster never does. */
static inline bool pinned_is_held(const struct pinned *pinned)
{
    unsigned none =
        PINNED_SKIP | PINNED_LISTENS | (pinned->tracking.words.commands ? PINNED_TRACKING : 0);
    return pinned->states & ~none || redirection_is_used(pinned->redirected);
}

/* False of nearly all clients: then neither pinned_flush() nor pinned_pace() has anything to do. */
static inline bool pinned_is_paced(const struct pinned *pinned)
{
    return pinned->own || pinned->wait_fence || pinned->tracking.count || pinned->listening;
}

#endif
