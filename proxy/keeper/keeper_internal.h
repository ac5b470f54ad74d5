/* What the files of the keeper share: the shell, which opens and closes its parts and lets them
 * meet.
 *
 *   keeper_run.c ─ opens all ─▶ the loop ─ SIGTERM ─▶ keeper_leave.c ─▶ keeper_end.c ─ closes all
 *      parts/    each owns what it is about, is told of the others by callbacks, is tested alone
 *      changes/  "this key changed": one table says whom each cause concerns
 *
 * All of it is the keeper's thread's, but for the mailbox, what is _Atomic, and the counters of
 * workers and loads, which one thread writes and any may read.
 */
#ifndef NESTGUARD_KEEPER_INTERNAL_H
#define NESTGUARD_KEEPER_INTERNAL_H

#include "base/mailbox.h"
#include "build/renewal.h"
#include "config/config.h"
#include "guard/expiry.h"
#include "guard/overrides.h"
#include "guard/view.h"
#include "http/http.h"
#include "keeper/changes/changes.h"
#include "keeper/changes/entries.h"
#include "keeper/inquiry.h"
#include "keeper/keeper.h"
#include "keeper/parts/accounting.h"
#include "keeper/parts/cache_log.h"
#include "keeper/parts/checking.h"
#include "keeper/parts/loading.h"
#include "keeper/parts/publishing.h"
#include "keeper/parts/purging.h"
#include "keeper/parts/pushes.h"
#include "keeper/parts/replica_watch.h"
#include "keeper/parts/replication.h"
#include "keeper/parts/server_watch.h"
#include "keeper/parts/sources.h"
#include "keeper/parts/standings.h"
#include "keeper/reload.h"
#include "keeper/succession.h"
#include "publish/publisher.h"
#include "worker/client/client_memory.h"
#include "worker/worker.h"

/* A connection to a cache, for fills, purges and what is published there; workers have their own.
 */
struct cache_side {
    struct keeper *keeper;
    struct redis *redis;
    struct shared_config *config; /* by which it is; one reference. NULL: it is asked only */
    struct cache_log log;
    bool answered; /* it has come up, or failed to, once */
    char why[256]; /* the last reason for which it is not up; "" */
};

/* From one cache to another; see keeper_cache.c. */
enum cache_change { CACHE_STAYS, CACHE_SWEPT, CACHE_MOVES, CACHE_LEFT, CACHE_ENDS, CACHE_DROPPED };

struct keeper_cache {
    enum cache_change change;
    struct cache_side *here;
    struct cache_side *other; /* SWEPT: to come; later the one that is left. NULL: none */
    struct cache_side *asked; /* not taken yet; or DROPPED, and it comes next. NULL: none */
    bool is_publishing;       /* what is published is still at the other one */
    unsigned moving;          /* workers that still use the one that is left */
    bool is_same;             /* the same server with the same data, which need not be swept */
    bool is_doubtful; /* MOVES to ENDS: what fills it may be old when the other one has ended */
    unsigned ending;  /* of the two, at the end */
    void (*ended)(struct keeper *keeper);
    uint64_t since; /* clock_ms() of the last change of this */
};

/* A file that was read, until a cache that it names anew, and the database, have answered. */
struct reloading {
    struct config *fresh;    /* NULL: none */
    struct inquiry *inquiry; /* of others, about that; NULL: none is under way */
    struct reload reload;
    reload_done done;
    void *arg;
    bool again; /* as soon as one can be: something was left out, or asked for meanwhile */
};

struct keeper {
    uv_loop_t loop;
    struct mailbox mailbox; /* what workers ask, and what they give back */
    uv_timer_t tick;        /* looks for what is due, and for what has taken too long */
    uv_signal_t on_term, on_int, on_hup, on_usr2;
    uint64_t started; /* clock_ms() */

    struct outlet outlet;         /* the way to the workers' mailboxes */
    struct publishing publishing; /* configuration, generation and states, as workers have them */
    struct entries entries;       /* hints, tombstones, blocks: the table that workers copy */
    struct expiry expiry;         /* of those that have ended */
    struct accounting accounting; /* who asks how much */
    struct replica_watch replicas;

    struct worker **workers;             /* `worker_count` of them, by their indices */
    unsigned worker_count, workers_left; /* left: those that have not ended */
    _Atomic unsigned client_total;       /* of all workers, who keep max_clients by it */
    struct client_memory client_memory;  /* likewise, of max_client_memory */

    struct changes changes; /* whom each change of a key concerns */
    struct keeper_cache cache;
    struct reloading reloading;
    char refusal[600];                    /* of the last file that was read; "": it was taken */
    struct watch *watch;                  /* what workers must tell of before they write it */
    struct vouched *vouched;              /* where workers may read what is guarded */
    struct loading loading;               /* rows: the pool, loads, fills */
    struct checking checking;             /* false-negative checks and self-checks */
    struct purging purging;               /* keys that are to go from the cache */
    struct values *names;                 /* where the tables' names lead */
    struct publisher *publisher;          /* NULL: nothing is published */
    struct replication replication;       /* which generation serves; does nothing without a log */
    struct standings standings;           /* without a log to follow, in the place of replication */
    struct sources sources;               /* keys that are no rows', in files */
    bool lacking[KEYSPACES_MAX];          /* of a source: the next list lacks keys that were told */
    struct pushes pushes;                 /* and those that are sent here */
    struct server_watch server;           /* which server the database is */
    struct touches touches;               /* calls of the control port under way */
    struct load_counters *counters;       /* by keyspaces' numbers; KEYSPACES_MAX */
    struct renewal renewal;               /* when generations are built */
    struct succession succession;         /* of the process before this one, and the one after */
    bool moves;                           /* `database` leads to another one than what is served */
    bool renamed;                         /* `database` is another than when that was built */
    uv_process_t *successor;              /* started here, and not ended; or NULL */
    bool handed_over;                     /* a successor has the sockets */
    const struct keeper_options *options; /* until the end */
    struct http_server *http;             /* the control port; NULL without one */
    struct leaving {
        bool begun;          /* load balancers are told to go elsewhere */
        bool early;          /* as soon as no client is left */
        unsigned letting_in; /* workers that have not heard that they shall not any more */
        uint64_t at;         /* clock_ms(): draining begins, at the latest */
    } leaving;
    bool draining;        /* told to end: nothing new is begun */
    uint64_t drain_since; /* clock_ms() */
    uint64_t step_since;  /* clock_ms(): what the end waits for now */
};

/* Posts a message of this kind, which has nothing but that, to every worker. */
void keeper_tell_workers(struct keeper *keeper, enum message_kind kind);

/* Leaving; see keeper_leave.c. Draining begins after so long, or `early` as soon as no client is
 * left. */
void keeper_open_leaving(struct keeper *keeper);
void keeper_leave(struct keeper *keeper, uint64_t after_ms, bool early);
void keeper_watch_leaving(struct keeper *keeper, uint64_t now); /* once in a while */

/* One guard after another. The first after all that it needs: without a predecessor the workers let
 * clients in at once. */
void keeper_open_succession(struct keeper *keeper);
void keeper_close_succession(struct keeper *keeper);
void keeper_tell_purged(struct keeper *keeper); /* a successor: nothing is owed to the cache */

/* The cache, and how another takes its place; see keeper_cache.c. 0, or a negative errno. */
int keeper_open_cache(struct keeper *keeper);
void keeper_watch_cache(struct keeper *keeper, uint64_t now); /* once in a while */
/* Reaches the cache of that configuration; keeper_go_on_reloading() when it has answered. */
void keeper_ask_cache(struct keeper *keeper, struct config *fresh);
/* The guard may go over to another just now. */
bool keeper_may_move_cache(const struct keeper *keeper);
/* That configuration's cache is the one that clients are led to, and need not be asked. */
bool keeper_has_cache(const struct keeper *keeper, const struct config *fresh);
/* It is in force: the cache that was asked takes over; or, none was, clients stay where they are.
 */
void keeper_move_cache(struct keeper *keeper, struct shared_config *config);
void keeper_forget_cache(struct keeper *keeper); /* the one that was asked */
void keeper_settle_cache(struct keeper *keeper); /* before the end: purges may still be sent */
void keeper_end_cache(struct keeper *keeper, void (*ended)(struct keeper *keeper));
void keeper_finish_cache(struct keeper *keeper);

/* See keeper_reload.c: the cache that is named anew can be reached, or not because of `why`. */
void keeper_go_on_reloading(struct keeper *keeper, const char *why);
void keeper_end_reloading(struct keeper *keeper); /* it comes to nothing: the guard is ending */

/* The control port, if there is one to be. 0, or a negative errno that the log has. */
int keeper_open_control(struct keeper *keeper);

/* The workers have ended: so does the rest, in order. */
void keeper_end(struct keeper *keeper);

/* Makes a fresh generation (NULL: keeps the present one) the one in force, works out every
 * keyspace's state, and sends the workers a new view. Takes the generation's reference. */
void keeper_publish(struct keeper *keeper, struct generation *fresh);

/* Publishes a new view if a keyspace's state is not what it should be. */
void keeper_review(struct keeper *keeper);

/* A worker's write or deletion, which goes back when that is safe, and its checks. */
void keeper_take_write(struct keeper *keeper, struct write_request *write);
void keeper_take_clearing(struct keeper *keeper, struct clearing_request *request);
void keeper_renew_hints(struct keeper *keeper, uint64_t now); /* once in a while */
void keeper_take_fn_check(struct keeper *keeper, struct fn_check_message *fn_check);

/* Subscribes those who must hear of changes. */
void keeper_open_changes(struct keeper *keeper);

/* Where the tables' names lead, as a probe has found. */
void keeper_learn_names(struct keeper *keeper, const char *names);

/* The log tells of a row that its filter has: what the key's entry says is known. */
void keeper_end_entry(struct keeper *keeper, const struct key_change *insertion);

/* What follows from following the database; see replication.h. */
void keeper_watch_sync(struct keeper *keeper, uint64_t now); /* once in a while */

/* Keyspaces whose keys come from elsewhere. */
void keeper_open_sources(struct keeper *keeper);
/* A key of theirs was written or admitted: it is known until its source is taken anew. */
void keeper_know(struct keeper *keeper, struct key key);
/* A successor hears which of their files have not all that was told; and its own of this name is
 * such a one. */
void keeper_tell_lacking(struct keeper *keeper);
void keeper_lacks(struct keeper *keeper, struct span keyspace);

void keeper_open_server(struct keeper *keeper); /* once there are all pools */

/* A generation is built: its server is kept to (server_watch_keep_to()). Else why it is not to be
 * had. */
const char *keeper_take_server(struct keeper *keeper, const struct built *built);

/* Loads and self-checks read what names lead to from now on. */
void keeper_renew_names(struct keeper *keeper);

/* While a generation guards, the next is built without haste, so that lookups go on as fast;
 * unless the one that guards may be full before. */
void keeper_pace_builds(struct keeper *keeper);

/* What a generation is kept true by: replication, or standings. 0, or a negative errno that the log
 * has. */
int keeper_open_sync(struct keeper *keeper);

#endif
