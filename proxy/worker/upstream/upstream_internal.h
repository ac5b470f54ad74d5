/* Between the parts of an upstream.
 *
 *   upstream_requests.c  requests on a connection, and its end
 *   upstream_state.c     which states may follow which
 *   upstream_replies.c   what the cache sends on it
 *   upstream_arriving.c  a large reply that must become whole first
 *   upstream_own.c       what only an owner does
 *   upstream_connect.c   how a connection comes about
 *   upstream_doubt.c     whether its server may have forgotten what was deleted
 *   upstream_watch.c     what has taken too long, and the server's role
 *   upstream_redirect.c  in a cluster: what has to go to another node
 */
#ifndef NESTGUARD_UPSTREAM_INTERNAL_H
#define NESTGUARD_UPSTREAM_INTERNAL_H

#include "cache/vouched.h"
#include "net/backoff.h"
#include "redis/topology/redis_dial.h"
#include "worker/upstream/in_flight.h"
#include "worker/upstream/kept.h"
#include "worker/upstream/reply_window.h"
#include "worker/upstream/stall_budget.h"
#include "worker/upstream/upstream.h"

enum { UPSTREAM_KEEP_BYTES = 256 * 1024 };

enum state { CLOSED, DIALING, GREETING, UP, CLOSING };

/* What becomes of requests while there is no connection.
 *
 *   FIRST ─ fails, or comes up ─▶ OVER ─ closed while idle ─▶ AGAIN ─ the stream is closed ─▶ FIRST
 *     └─ no RESP3 ─▶ TOO_OLD ─ wanted again ─▶ FIRST
 */
enum attempt {
    ATTEMPT_FIRST,  /* they wait for the attempt under way */
    ATTEMPT_OVER,   /* it has come to its end: they fail, until there is a connection again */
    ATTEMPT_AGAIN,  /* closed while idle: connects without delay, and they wait for it */
    ATTEMPT_TOO_OLD /* the cache does not know RESP3: asked again when somebody wants it again */
};

/* The reply that is coming in.
 *
 *   GATHERED ┬─ large ─▶ PASSING ─ the budget of stalls is used up ─▶ HURRIED
 *            └─ likewise, and wanted whole ─▶ COUNTED
 *
 *   from each, large, and nobody waits for it any more: SKIPPED      whole: GATHERED
 */
enum reply_state {
    REPLY_GATHERED, /* until it is whole */
    REPLY_COUNTED,  /* likewise, and what is there counts for its client */
    REPLY_PASSING,  /* a part of it has gone to its slot */
    REPLY_HURRIED,  /* likewise, and its client has held up the others for long enough */
    REPLY_SKIPPED   /* a part of it has been let go */
};

/* Whom the end of a connection concerns.
 *
 *   HELD ─ an own one is lost ─▶ LOST ─ the turn's end ─▶ TOLD      from each: FINISHED
 */
enum tenure {
    TENURE_HELD,    /* somebody uses it */
    TENURE_LOST,    /* it is lost, and its owner is to be told at the end of this turn */
    TENURE_TOLD,    /* and has been */
    TENURE_FINISHED /* closed for good: the owner may be gone already */
};

/* Whether whoever gets the replies takes them.
 *
 *   UNWANTED ◀─ of an owner ─▶ WANTED ◀─ of those who share, within a budget ─▶ STALLED
 */
enum intake {
    INTAKE_WANTED,
    INTAKE_UNWANTED, /* its owner wants no more for now */
    INTAKE_STALLED   /* likewise one of those who share it, who may not hold it up for long */
};

struct upstream {
    struct stream stream;
    struct serving *serving;
    struct cache_route *route;
    struct turn_task task;
    enum state state;
    enum attempt attempt;
    enum reply_state reply;
    enum tenure tenure;
    enum intake intake;
    struct upstream_options options;
    uint64_t cache_id;        /* see upstream_cache_id() */
    char run_id[RUN_ID_SIZE]; /* of its server, as that told with the greeting */
    bool is_doubted;          /* see upstream_is_doubted() */
    uint64_t judged;          /* vouched_version() of then */
    char *name;               /* what options.name points to */
    struct redis_place node;  /* what options.node points to */
    bool waits;               /* see upstream_set_waiting() */
    bool keeps;               /* its commands, for another node: one to a node of a cluster */
    struct kept kept;
    uint64_t left;    /* bytes that have left `out`, since the connection's beginning */
    bool held;        /* nothing but the greeting is written */
    bool relays;      /* no frames any more: all bytes are the owner's */
    uint64_t stalled; /* clock_ms() since when it is */
    struct stall_budget stalls;
    uint64_t heard; /* the loop's time of the last bytes, or when it was held no more */
    size_t queued;  /* bytes that the kernel had not taken when that was last looked at */
    uint64_t turn;  /* of the worker, that they were read in */
    /* clock_ns(): so long, and in which turn, it goes on with a large reply */
    uint64_t passing_until, passing_turn;
    bool asking_role;    /* while it is up; the answer is still to come */
    uint64_t role_asked; /* clock_ms() of the last time */
    upstream_standing_cb hear;
    void *hear_arg;
    uint64_t standing_asked; /* clock_ms(); 0: it is not under way */
    uint64_t fresh;          /* see upstream_fresh() */
    bool asks_node;          /* by this greeting: which node of the cluster the server is */
    unsigned facts;          /* replies of this greeting behind that to ROLE */
    unsigned demotions;      /* the route's, when this connection was begun */
    bool in_trouble;         /* an answer to this greeting says so */
    bool is_urgent;          /* comes up though the cache is busy */
    char trouble[160]; /* what the cache answered to the last greeting when it was busy; "": it was
                          not */
    struct backoff backoff;
    uint64_t since;
    uv_timer_t timer;
    struct redis_dial dial;
    uv_write_t write;
    struct buffer opening; /* what options.opening points to */
    struct buffer greeting, in, out, sending;
    struct buffer unsent; /* where a command is written that no connection takes */
    struct resp_frame frame;
    struct in_flight_queue in_flight;
    struct reply_window window; /* for these */
    size_t weighed;  /* replies of so many bytes, and more, are weighed; SIZE_MAX: none */
    size_t gathered; /* the last of them, which are in `out` and not written yet */
    struct in_flight_queue failed; /* to be told at the end of this turn */
    size_t counted;                /* bytes of `in` that the oldest request's slot holds */
};

/* Numbers of a connection's own questions while it is up. */
enum {
    ASKED_ROLE,
    ASKED_AHEAD, /* of a request of somebody's */
    ASKED_STANDING,
    ASKED_BY_OWNER,
    ASKED_TO_ANSWER,
    ASKED_NO_MORE
};

static inline bool upstream_is_own(const struct upstream *upstream)
{
    return upstream->options.owner != NULL;
}

/* Whether requests fail that find no connection. */
static inline bool upstream_was_tried(const struct upstream *upstream)
{
    return upstream->attempt == ATTEMPT_OVER || upstream->attempt == ATTEMPT_TOO_OLD;
}

/* Reads from the stream, or not, as its replies can be taken in; `was_reading`: it does. */
void upstream_follow_intake(struct upstream *upstream, bool was_reading);

/* Whether the stream is read from now. The greeting always is. */
static inline bool upstream_is_reading(const struct upstream *upstream)
{
    return upstream->state == GREETING ||
           (upstream->state == UP && upstream->intake == INTAKE_WANTED);
}

/* These assert that the move is legal. */
void upstream_set_state(struct upstream *upstream, enum state state);
void upstream_set_tenure(struct upstream *upstream, enum tenure tenure);

/* Reads or stops reading, where that makes a difference. */
void upstream_set_intake(struct upstream *upstream, enum intake intake);

/* What a node says of a key that it does not have is not for the client: the request goes where it
 * points to. `bytes` is the command. False: *reply, which may be another now, is for the client. */
bool upstream_redirect(struct upstream *upstream, const struct in_flight *request,
                       struct span *reply, struct span bytes);

/* Another reply is expected, to the slot's request or (NULL) to the greeting. */
void upstream_push(struct upstream *upstream, struct reply_slot *slot, unsigned index);
/* The same of a command whose bytes are then appended to `out`, where another node may need them;
 * it was sent on so many times before. */
void upstream_push_command(struct upstream *upstream, struct reply_slot *slot, unsigned index,
                           unsigned hops);
/* What is there of a large reply, which is to become whole, counts for whoever waits for it; and,
 * when it does not become whole, no more. */
void upstream_gather(struct upstream *upstream, struct reply_slot *slot);
void upstream_uncount(struct upstream *upstream);
/* Lets go of what is there of a large reply to the slot, if nobody waits for it. */
bool upstream_skip(struct upstream *upstream, const struct reply_slot *slot);
/* The end of a reply that was large; what had become of it. */
enum reply_state upstream_end_reply(struct upstream *upstream);

/* What stands in `out` is sent at the turn's end. */
static inline void upstream_mark_dirty(struct upstream *upstream)
{
    turn_add(&upstream->serving->turn, &upstream->task);
}

/* Clients that were not read from because of this connection may be again. */
static inline void upstream_tell_relief(struct upstream *upstream)
{
    turn_add(&upstream->serving->turn, &upstream->serving->relief);
}

/* What it is for decides how much is sent ahead over it, and which replies are weighed. */
void upstream_set_window(struct upstream *upstream);

/* So many bytes of a large reply to the oldest request have come; or it is whole with them, which
 * were not weighed yet. */
void upstream_weigh(struct upstream *upstream, size_t bytes);
void upstream_weigh_whole(struct upstream *upstream, size_t bytes);

/* A look-up of the name goes on; but nobody waits for it any longer. */
void upstream_stop_waiting(struct upstream *upstream);

/* From CLOSED, while the next attempt waits for its time. */
void upstream_retry_now(struct upstream *upstream);

/* Gives the connection, or the attempt to connect, up. */
void upstream_lose(struct upstream *upstream, const char *why);

/* CLOSING: whatever is open, or about to be, is closed. */
void upstream_close_stream(struct upstream *upstream);

/* CLOSED: nothing is open. */
void upstream_closed(struct upstream *upstream);

/* Connected, or not answered as yet because the cache was busy: the greeting goes into its buffer.
 */
void upstream_greet(struct upstream *upstream);

/* A reply to it; behind it `left` more are to come. */
void upstream_greeted(struct upstream *upstream, unsigned left, struct span reply);

/* The slot hears at the end of the turn that the request has failed. */
void upstream_fail_later(struct upstream *upstream, struct in_flight request);

/* That request of the slot looks up rows that the guard could load, or reads one's key. */
bool upstream_looks_up_rows(const struct reply_slot *slot, unsigned index);
extern const char upstream_doubted_text[]; /* why it fails then */
/* Whether the request goes to this doubted server. */
bool upstream_takes_doubted(const struct upstream *upstream, const struct reply_slot *slot,
                            unsigned index);
/* The request, which was pushed just now to a node of a cluster, leads on if that is doubted. */
void upstream_mark_doubted(struct upstream *upstream);

/* It comes up: whether it is doubted; then what waits in `out` and is a lookup of rows fails. */
void upstream_judge_server(struct upstream *upstream);
/* Its server was found to be no primary any more: those of others there are not to be trusted. */
void upstream_note_demotion(struct upstream *upstream);
/* Once in a while: it may be believed by now, or doubted, when the same holds. What was written
 * before is answered. */
void upstream_review_server(struct upstream *upstream);

/* What waits is told that the cache is in trouble. */
void upstream_fail_waiting(struct upstream *upstream);

/* Connected, and the greeting is in its buffer. */
void upstream_begin(struct upstream *upstream);

/* There will be no answer, and another connection may lead to another process. */
static inline void upstream_forget_questions(struct upstream *upstream)
{
    upstream->asking_role = false;
    upstream->standing_asked = upstream->fresh = 0;
}

/* It is the answer to the connection's own PING, and not its owner's. */
bool upstream_takes_pong(struct upstream *upstream, struct span frame);

/* The answer to INFO replication. */
void upstream_take_standing(struct upstream *upstream, struct span reply);

/* The log is told of the cache, not of its replicas: those are read from when there is one. That
 * all is there again the pool tells, and which nodes are down the keeper: by their addresses
 * several would take turns in being news. */
static inline void upstream_log(struct upstream *upstream, const char *why)
{
    if (!upstream->options.replica)
        serving_log_cache(upstream->serving, why);
}

/* From CLOSED: connects. */
void upstream_start(struct upstream *upstream);

#endif
