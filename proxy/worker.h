/* A thread with an event loop that serves clients. It decides by its view and its copy of the exact
 * entries, forwards to the cache over its own connections, and asks the keeper for rows. Workers
 * share nothing with each other.
 *
 *   sockets ─▶ clients ─▶ dispatch ─▶ upstreams ─▶ cache
 *                            └──────▶ mailbox of the keeper ─▶ own mailbox
 */
#ifndef NESTGUARD_WORKER_H
#define NESTGUARD_WORKER_H

#include "counters.h"
#include "dispatch.h"
#include "mailbox.h"
#include "view.h"

struct listener;

struct worker {
    uv_loop_t loop;
    uv_thread_t thread;
    unsigned index;
    struct mailbox mailbox;
    struct mailbox *keeper;
    size_t asked; /* requests that the keeper has not returned yet */
    struct view *view;
    struct overrides overrides;

    struct listener *listeners;
    size_t listener_count;
    struct client *clients, *dirty_clients;
    _Atomic unsigned *client_total; /* of all workers */
    uint64_t next_client;
    struct upstream **upstreams;
    size_t upstream_count;
    struct upstream **dirty_upstreams;
    size_t dirty_upstream_count;
    uv_prepare_t turn; /* before the loop waits: everything gathered is written */
    uv_timer_t tick;
    struct message *drain; /* the order to end, once it has come */
    uint64_t drain_since;
    bool cache_lost; /* the last word in the log about the cache */

    struct slot *free_slots;
    size_t free_slot_count;
    struct resp_arguments arguments;
    struct request batch[BATCH_COMMANDS];
    struct buffer command; /* one command on its way to an upstream */
    char scratch[64 * 1024];

    struct worker_counters counters;
    struct keyspace_counters *keyspaces;
};

struct worker_options {
    unsigned index;
    struct mailbox *keeper;
    struct view *view;   /* this worker is one of its holders */
    const int *fds;      /* bound sockets, taken over */
    const bool *is_unix; /* of each */
    size_t count;
    _Atomic unsigned *client_total;
};

/* Starts the thread. 0 or a negative errno. The worker ends by MESSAGE_DRAIN, which comes back to
 * the keeper as the worker's last act. */
int worker_create(struct worker **out, const struct worker_options *options);

/* After MESSAGE_DRAIN has come back: joins the thread and frees. The view that the worker held is
 * the caller's. */
void worker_destroy(struct worker *worker);

/* For clients and upstreams of this worker. */
uint64_t worker_next_client_id(struct worker *worker);
struct upstream *worker_upstream(struct worker *worker, uint64_t client);
void worker_add_client(struct worker *worker, struct client *client);
void worker_remove_client(struct worker *worker, struct client *client);
void worker_mark_upstream(struct worker *worker, struct upstream *upstream);
void worker_ask_keeper(struct worker *worker, struct message *message);
void worker_log_cache(struct worker *worker, const char *why); /* NULL: it is there again */

#endif
