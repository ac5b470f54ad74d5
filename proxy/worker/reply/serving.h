/* What the parts of one worker share: what it decides by, whom it asks, what it counts. No part
 * shares anything with another worker.
 */
#ifndef NESTGUARD_SERVING_H
#define NESTGUARD_SERVING_H

#include "base/buffer.h"
#include "base/log/log_state.h"
#include "base/mailbox.h"
#include "base/memory.h"
#include "guard/counters.h"
#include "guard/overrides.h"
#include "guard/view.h"
#include "guard/watch.h"
#include "resp/resp.h"
#include "worker/reply/measures.h"
#include "worker/reply/turn.h"
#include <stdalign.h>

struct hosts;
struct ledger;
struct pool;
struct vouched;
struct reply_slot;
struct redis_cluster;
struct redis_topology;

/* Where connections to the cache lead, and as whom they log in. */
struct cache_route {
    const struct config *config; /* not always the view's; the keeper holds it (guard/messages.h) */
    struct redis_topology *topology; /* where the cache is; NULL: at a fixed address */
    struct redis_cluster *cluster;   /* where its keys are; NULL: it is one server */
    struct pool *pool;               /* the shared ones that go by it */
    unsigned demotions;              /* times that it was found to be no primary any more */
    size_t connections;              /* that go by it, until their memory is freed */
};

/* Of the worker's commands, whose keys one in many is looked at. */
struct sampling {
    uint64_t last, next; /* numbers of commands */
    uint64_t random;     /* xorshift64's state (Marsaglia 2003) */
};

/* Those whose memory is being freed (reply_slot_gone.c). */
struct gone_slots {
    struct turn_task task;
    struct reply_slot *first;
};

/* Lives in its worker; belongs to the worker's thread, but for the mailbox, to which any thread may
 * post, and the counters, which any thread may read. */
struct serving {
    uv_loop_t loop;
    unsigned index;                             /* the worker's */
    alignas(CACHE_LINE) struct mailbox mailbox; /* what the keeper sends, and what it returns */
    alignas(CACHE_LINE) struct mailbox *keeper; /* from here on nobody else writes */
    const struct watch *watch;                  /* the keys that the keeper must hear of */
    struct vouched *vouched;                    /* the cache's servers; NULL: all are believed */
    unsigned own_connections;                   /* of clients that do not share */
    unsigned own_limit;                         /* as many as configuration and cache allow */
    size_t max_bulk;                            /* likewise: bytes of an argument */
    size_t held_limit; /* bytes of a client's replies behind a late one: half of max_output */
    uint64_t cache_bulk, cache_clients; /* the cache's own limits, as last heard; 0: not yet */
    size_t asked; /* requests that the keeper has not returned yet, or that it waits to get again */
    bool ending;  /* the keeper is asked nothing any more */
    struct view *view;             /* decided by; the keeper replaces it */
    struct permission permission;  /* to reject, of the batch being served */
    struct overrides overrides;    /* the copy of the keeper's overrides */
    struct turn turn;              /* what is left for the end of a loop turn */
    struct turn_task relief;       /* the worker's: clients may send to the cache again */
    struct reply_slot *free_slots; /* reply_slot.c's store */
    size_t free_slot_count;
    struct gone_slots gone;
    size_t piecemeal; /* bytes of commands that are served in pieces, see piecemeal.h */
    size_t
        hints_meant; /* places of the overrides that such writes have taken, and not filled yet */
    struct resp_arguments arguments; /* of the batch being served */
    char scratch[64 * 1024];         /* where clients' input is read and parsed */
    size_t scratch_used;             /* of it, by input that is not served yet */
    unsigned reads;                  /* from clients, since replies were last written meanwhile */
    struct log_state cache_state;    /* bad: it is lost, and why */
    struct cache_route *route;       /* of connections that are begun now */
    struct pool *pool;               /* the shared ones of these */
    bool is_led;           /* a command goes elsewhere by its key: to a node, or to a replica */
    uint64_t sampled;      /* clock_ms() of the last would-be reject that was told to the keeper */
    struct hosts *hosts;   /* where clients are, and were (hosts.h) */
    struct ledger *ledger; /* of clients and keys; what is gathered there the keeper fetches */
    struct sampling sampling;
    struct measures measures;
    struct worker_counters counters;
    struct keyspace_counters *keyspaces; /* by their numbers; KEYSPACES_MAX */
    size_t arrived; /* bytes of replies that are gathered for clients, since `weighing` ran last */
    struct turn_task weighing; /* the worker's: they may be enough to matter */
};

static inline const struct config *serving_config(const struct serving *serving)
{
    return serving->view->config;
}

/* By its number: that of a guarded key. */
static inline const struct keyspace *serving_keyspace(const struct serving *serving, int keyspace)
{
    return &serving_config(serving)->keyspaces[keyspace];
}

/* The configuration, or what is known of the cache's limits, has changed. What is over these the
 * cache would punish by hanging up, and on a shared connection others would suffer it. */
void serving_update_limits(struct serving *serving);

/* So much more is there of a reply that is gathered for a client. */
void serving_arrived(struct serving *serving, size_t bytes);

/* Posts a message to the keeper; it comes back to the worker's mailbox. */
void serving_ask_keeper(struct serving *serving, struct message *message);

/* The cache is lost, or with NULL it is there again. The log is told of each change, also of the
 * reason, but no more often than once a second: then of the last. */
void serving_log_cache(struct serving *serving, const char *why);
void serving_tell_log(struct serving *serving, uint64_t now); /* once in a while */

#endif
