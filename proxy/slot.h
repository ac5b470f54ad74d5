/* The place of one reply in a client's queue.
 *
 *   client ─▶ slot ─▶ slot ─▶ slot      replies leave from the head, when the head is done
 *              │ waiting: cache replies and keeper's answers still to come
 *              └─ lookups: the guarded keys of its command
 *
 * A slot outlives its client: whoever still owes it an answer finds it with `client` NULL, and the
 * last answer gives its memory back.
 */
#ifndef NESTGUARD_SLOT_H
#define NESTGUARD_SLOT_H

#include "buffer.h"
#include "guard.h"
#include "requests.h"

struct client;
struct worker;
struct slot;

struct lookup {
    struct slot *slot;
    struct span key; /* in the slot's memory */
    int keyspace;    /* or NOT_GUARDED */
    bool rejected;
    struct buffer answer; /* of a slot with more than one lookup: this key's part of the reply */
};

/* What a kind of command does with the answers that it gets. */
struct slot_kind {
    /* A reply from the cache to the request number `index` of this slot. */
    void (*on_cache)(struct slot *slot, unsigned index, struct span reply);
    /* The cache did not answer that request; `why` is an error text without its dash. */
    void (*on_cache_failure)(struct slot *slot, unsigned index, const char *why);
    /* The keeper's answer to one lookup; NULL when the kind never loads. */
    void (*on_loaded)(struct lookup *lookup, enum load_outcome outcome, const struct blob *value);
    /* Everything is there: writes what is left of the reply to slot_output(). May be NULL. */
    void (*finish)(struct slot *slot);
};

struct slot {
    struct slot *next;
    struct worker *worker;
    struct client *client;
    const struct slot_kind *kind;
    unsigned waiting;
    unsigned commands; /* 1, or the number of ready replies gathered here */
    size_t lookup_count;
    struct lookup *lookups; /* &one when there is just one */
    struct lookup one;
    struct buffer reply; /* what is ready while earlier slots are not */
    struct buffer keys;  /* the bytes of the lookups' keys */
};

/* A slot at the tail of the client's queue, waiting for nothing yet; from the worker's store. */
struct slot *slot_open(struct client *client, const struct slot_kind *kind);

/* Where the slot's reply is to be written: straight into the client's output when the slot is its
 * queue's head. */
struct buffer *slot_output(struct slot *slot);

/* Copies the keys of the lookups: `count` of them, at arguments[0], [step], ... All of them start
 * as NOT_GUARDED. */
void slot_set_lookups(struct slot *slot, const struct span *arguments, size_t count, size_t step);

/* The three kinds of answers; each ends with slot_answered(). */
void slot_cache_reply(struct slot *slot, unsigned index, struct span reply);
void slot_cache_failure(struct slot *slot, unsigned index, const char *why);
void slot_loaded(struct lookup *lookup, enum load_outcome outcome, const struct blob *value);

/* One answer less to wait for. At zero the slot is finished, and the client's queue moves on; the
 * slot may be gone then. */
void slot_answered(struct slot *slot);

/* Gives the slot back to the worker's store; slot_destroy() frees one that is in no queue and no
 * store. */
void slot_recycle(struct slot *slot);
void slot_destroy(struct slot *slot);

#endif
