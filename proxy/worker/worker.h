/* A thread with an event loop that serves clients. It decides by its view and its copy of the exact
 * entries, forwards to the cache over its own connections, and asks the keeper for rows. Workers
 * share nothing with each other.
 *
 *   sockets ─▶ clients ─▶ dispatch ─▶ upstreams ─▶ cache
 *                            └──────▶ mailbox of the keeper ─▶ own mailbox
 */
#ifndef NESTGUARD_WORKER_H
#define NESTGUARD_WORKER_H

#include "guard/expiry.h"
#include "worker/client/client.h"
#include "worker/client/tour.h"
#include "worker/listener.h"
#include "worker/move.h"
#include "worker/reply/serving.h"

struct worker {
    struct serving serving;
    struct clients clients;
    struct move move; /* of its connections, to another cache */
    uv_thread_t thread;
    struct listeners listeners;    /* one for each listen address */
    uv_timer_t tick;               /* looks for what has taken too long */
    struct tour checking;          /* of the tick */
    struct tour settling;          /* of accounts, for this: */
    struct ledger_message *ledger; /* to be given back; NULL: the keeper has not asked */
    struct tour resuming;          /* the cache takes commands again */
    struct expiry expiry;          /* of overrides */
    struct message *drain;         /* the order to end, once it has come */
    uint64_t drain_since;          /* clock_ms() */
    _Atomic uint64_t turn;         /* clock_ms() of the last tick, for the keeper */
};

struct worker_options {
    unsigned index;
    struct mailbox *keeper;
    const struct watch *watch;
    struct vouched *vouched;         /* NULL: all servers of the cache are believed */
    struct view *view;               /* this worker is one of its holders */
    const int *fds;                  /* bound sockets, taken over */
    const struct address *addresses; /* of each; during the call */
    size_t count;
    bool waits;                     /* lets nobody in before MESSAGE_ACCEPT */
    _Atomic unsigned *client_total; /* clients of all workers, for max_clients */
    struct client_memory *memory;   /* of these; NULL: it has no bound */
};

/* Starts the thread. 0, or a negative errno: then the process must end, for what was begun is not
 * taken back. The worker ends by MESSAGE_DRAIN, which comes back to the keeper as the worker's last
 * act. */
int worker_create(struct worker **out, const struct worker_options *options);

/* When the thread last came to its timer (clock_ms()), a tenth of a second ago while all is well.
 * For any thread, until MESSAGE_DRAIN has come back. */
uint64_t worker_turn(const struct worker *worker);

/* After MESSAGE_DRAIN has come back: joins the thread and frees. The view that the worker held is
 * the caller's. */
void worker_destroy(struct worker *worker);

#endif
