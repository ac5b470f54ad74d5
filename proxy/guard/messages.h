/* What workers and keeper say to each other. Each is a message that comes back with its answer. */
#ifndef NESTGUARD_MESSAGES_H
#define NESTGUARD_MESSAGES_H

#include "base/blob.h"
#include "base/mailbox.h"
#include "guard/overrides.h"
#include <stdbool.h>

enum message_kind {
    MESSAGE_VIEW,     /* keeper -> worker: decide by this view; comes back with the view that it
                         replaced */
    MESSAGE_OVERRIDE, /* keeper -> worker: set or drop an override */
    MESSAGE_ACCEPT,   /* keeper -> worker, which was told to wait: let clients in */
    MESSAGE_MOVE, /* keeper -> worker: the cache is elsewhere; comes back when nothing leads to the
                     one before any more */
    MESSAGE_KEYS_MOVED, /* keeper -> worker: the cache's keys have other nodes: ask for yourself */
    MESSAGE_YIELD,      /* keeper -> worker: let no more clients in */
    MESSAGE_DRAIN, /* keeper -> worker: finish what is under way and end; comes back when the loop
                      is empty */
    MESSAGE_LOAD,  /* worker -> keeper: read this key's row */
    MESSAGE_FN_CHECK, /* worker -> keeper: shadow mode would have rejected this key */
    MESSAGE_WRITE,    /* worker -> keeper: this key was written or deleted; comes back when that is
                         safe */
    MESSAGE_CLEARING, /* worker -> keeper, twice: see clearing_request */
    MESSAGE_LEDGER,   /* keeper -> worker: an empty ledger; comes back with what was gathered */
    MESSAGE_REPLICAS, /* keeper -> one worker: whom does it read from? Comes back with the answer */
    MESSAGE_ROLL_CALL /* worker -> keeper -> each worker, and back: see roll_call */
};

enum load_outcome {
    LOAD_ROW,
    LOAD_ABSENT, /* the database has no such row */
    LOAD_BUSY,   /* it has waited for load_timeout for its turn at the database */
    LOAD_CUT,    /* too many wait for theirs, and its client's are the most */
    LOAD_TIMEOUT,
    LOAD_DOWN,      /* the database cannot be reached */
    LOAD_REFUSED,   /* the database answered with an error */
    LOAD_AMBIGUOUS, /* the key can be split into columns in too many ways */
    LOAD_TOO_LARGE  /* there is a row, and its value is larger than max_value */
};

struct lookup; /* the worker's; see reply_slot.h */

struct load;      /* the keeper's; see loads_course.c */
struct load_line; /* likewise; see loads_queue.h */

struct load_request {
    struct message message;
    struct lookup *lookup;
    const void *client; /* whose loads take turns with those of others; not to be looked into */
    uint64_t origin;    /* of the client: those of one share its turns */
    const _Atomic bool *gone; /* the client is; nobody needs the row. NULL: it never is */
    enum load_outcome outcome;
    struct blob *value; /* with LOAD_ROW; a reference that goes back with the request */
    /* The keeper's, from here to the key. */
    struct load *load;
    struct load_request *previous, *next; /* who wait for the same key */
    bool late;                            /* joined when the query was on its way */
    bool late_and_stale;                  /* joined when the row had changed since */
    bool paid;                            /* for a large row, however often it must be read */
    struct load_line *line;               /* that it waits in for its turn; NULL: in none */
    struct load_request *ahead, *behind;  /* in it */
    uint64_t queued;                      /* clock_ms() when it came there */
    uint64_t asked;                       /* and to the keeper: its patience counts from then */
    struct key key;
    char text[]; /* the key's */
};

struct reply_slot;

/* A write or deletion of a guarded key that the cache has run, for all we know, and that the keeper
 * must know of: because no filter holds the key (a hint), or because the keeper was at work for it
 * when the command was sent. The reply to the command waits until these come back. */
struct write_request {
    struct message message;
    struct reply_slot *slot;
    bool done; /* else its condition was not met, or it made nothing */
    bool wants_hint;
    bool shares_hint; /* another write's, which not all may have yet, for all its worker knows */
    bool stranded;    /* the answer: a process that decides, too, may not know of the key */
    bool deletes;     /* of the cache: what is on its way there must not stay */
    struct key key;
    char text[]; /* the key's */
};

struct loads_clearing; /* the keeper's; see loads.h */

/* A command behind which nothing may stay in the cache that was read before it, whatever its key.
 * ASKED, it comes back when all fills are answered that were sent before; then the command goes to
 * the cache, and no fill does until the worker has sent this once more, to say what has become of
 * it. The reply to the command waits for that. */
struct clearing_request {
    struct message message;
    struct reply_slot *slot;
    enum clearing_step { CLEARING_ASKED, CLEARING_DONE, CLEARING_REFUSED } step;
    struct loads_clearing *clearing;
    int node; /* the worker's: where the command goes */
    size_t length;
    char command[];
};

/* What a worker has to ask of the clients of all. The keeper sends it round, to one worker after
 * the other: each adds its part, and gives it back to the keeper. */
struct roll_call {
    struct message message;
    unsigned visited; /* the keeper's: workers that have had it */
    enum roll_call_state {
        ROLL_CALL_ROUND,
        ROLL_CALL_DONE,
        ROLL_CALL_CUT
    } state; /* CUT: the guard is ending */
};

/* The cache is by this configuration, which the keeper holds until the next such order has come
 * back, or the worker has ended. */
struct move_order {
    struct message message;
    const struct config *config;
};

struct ledger; /* traffic/ledger.h */

struct ledger_message {
    struct message message;
    struct ledger *ledger;
};

struct replica_word; /* worker/upstream/replicas.h */

struct replicas_message {
    struct message message;
    struct replica_word *words; /* the keeper's; there is room for so many */
    size_t room, count;
};

/* A sample of what shadow mode would have rejected: is there a row? Comes back at once. */
struct fn_check_message {
    struct message message;
    struct key key;
    char text[]; /* the key's */
};

/* The keeper's order to set (or with OVERRIDE_NONE drop) an override. */
struct override_message {
    struct message message;
    struct broadcast *broadcast; /* the keeper's */
    struct override entry;
    struct key key;
    char text[]; /* the key's */
};

#endif
