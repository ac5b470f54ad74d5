/* The queue of a client's replies, and the place of each in it.
 *
 *   replies ─▶ slot ─▶ slot ─▶ slot      replies leave from the head, when the head is done
 *               │ waiting: cache replies and keeper's answers still to come
 *               └─ lookups: the guarded keys of its command
 *
 * A slot outlives its client: whoever still owes it an answer finds it with `replies` NULL, and the
 * last answer gives its memory back.
 */
#ifndef NESTGUARD_REPLY_SLOT_H
#define NESTGUARD_REPLY_SLOT_H

#include "guard/messages.h"
#include "worker/reply/serving.h"
#include <stdalign.h>

enum { SHORT_KEY = 24 }; /* as much as there is room for beside a lookup */

/* Commands may have a million of them: each is small, and what they are answered lies in one place.
 */
struct lookup {
    struct reply_slot *slot;
    union {
        struct lookup *next; /* in replies->to_load */
        size_t answer;       /* where its part of the reply is, once it has one: lookup_answer() */
        size_t command;      /* of EXEC: which of those queued it is of */
    };
    struct span key; /* in the slot's memory */
    union {
        unsigned answer_length;
        unsigned proof; /* of EXEC: command_proof */
    };
    int keyspace;   /* or NOT_GUARDED */
    bool rejected;  /* of EXEC: by the cache */
    bool shadowed;  /* it would have been, but for shadow mode */
    bool deleted;   /* of a command that makes keys: this one goes */
    bool granted;   /* of one that makes it: it has places of its client's share of hints */
    bool watched;   /* likewise: the keeper was at work for it before the command was sent */
    unsigned asked; /* once it is with the keeper: the how manieth of its client's */
};

/* What a kind of command does with the answers that it gets. */
struct reply_slot_kind {
    /* A reply from the cache to the request number `index` of this slot. */
    void (*on_cache)(struct reply_slot *slot, unsigned index, struct span reply);
    /* A piece of a large reply, in order; on_cache gets the rest. NULL: replies are wanted whole.
     */
    void (*on_part)(struct reply_slot *slot, struct span bytes);
    /* The cache did not answer that request; `why` is an error text without its dash. */
    void (*on_cache_failure)(struct reply_slot *slot, unsigned index, const char *why);
    /* In place of these two when nobody waits for the reply any more; `reply` is empty when the
     * cache did not answer. NULL: then it does not matter. */
    void (*on_unheard)(struct reply_slot *slot, struct span reply);
    /* A replica had no answer to that request: the primary is asked the same (at_replica.h). NULL:
     * replicas are never asked. */
    void (*ask_again)(struct reply_slot *slot, unsigned index);
    /* The keeper's answer to one lookup; NULL when the kind never loads. */
    void (*on_loaded)(struct lookup *lookup, enum load_outcome outcome, const struct blob *value);
    /* A part of the slot's command has been answered (reply_slot's `whole`); nobody may wait for
     * the whole any more. */
    void (*on_part_of)(struct reply_slot *whole, struct span reply);
    /* Everything is there: writes what is left of the reply to reply_slot_output(). May be NULL. */
    void (*finish)(struct reply_slot *slot);
    bool asks_each; /* a request is for one of several lookups, whose place is its number */
    bool reads_row; /* without a lookup: what the cache alone can tell of a row's key */
    bool may_write; /* of these: done unheard it would be half done */
};

struct replies;
struct upstream;

/* Thousands of them are under way at a time: what every command needs comes first, and a lookup of
 * one key touches three of the processor's cache lines. */
struct reply_slot {
    alignas(CACHE_LINE) struct reply_slot *next;
    struct serving *serving;
    struct replies *replies;
    const struct reply_slot_kind *kind;
    unsigned waiting;
    unsigned commands; /* 1, or the number of ready replies gathered here */
    bool resp3;        /* the protocol of its reply, though the client may have switched since */
    bool muted;        /* its reply is dropped */
    bool begun;        /* a part of the cache's reply has gone to the client */
    struct lookup *lookups; /* NULL: none; &one: reply_slot_set_lookup() */
    size_t lookup_count;
    bool asks_for_rows;        /* of several lookups: one at least is of what the database has */
    char short_key[SHORT_KEY]; /* of the one lookup, when it fits */
    struct lookup one;
    uint64_t since; /* uv_hrtime() of when it went to the cache, if it has lookups and is timed */
    unsigned times; /* it stands for so many when what it took is counted; 0: it is not timed */
    struct buffer reply; /* what is ready while earlier slots are not; before that, the lookups' */
    size_t arrived;      /* bytes of it that count as held, though more is to come */
    size_t gathered; /* bytes of several lookups, of their parts of the reply, and on their way */
    struct buffer keys; /* the bytes of the lookups' keys */
    struct reply_slot
        *whole;        /* whose kind gets the reply, for this is a part of its command; NULL */
    union {            /* of such a whole; or of a kind of its own */
        size_t joined; /* what its kind counts, also of others */
        struct piecemeal *pieces;          /* what is left to be asked; NULL */
        struct clearing_request *clearing; /* of clearing.c's: on its way to the cache; NULL */
    };
    unsigned loading;  /* of its lookups, those that are with the keeper */
    _Atomic bool gone; /* the client is, while something is still to come; the keeper looks here */
    uint64_t origin;   /* with `replies` NULL: of them */
};

/* Whether a client can ask for more replies, and why not.
 *
 *   OPEN ◀─ all is answered ─ much is held behind one that is late ─▶ PACED      both ─▶ the others
 */
enum replies_end {
    REPLIES_OPEN,
    REPLIES_PACED,     /* no more is served; it gets all that is under way, however much */
    REPLIES_OVERFLOWN, /* more than max_output waits */
    REPLIES_BROKEN     /* a reply will never be whole */
};

struct replies {
    struct serving *serving;
    struct turn_task *task; /* the client's, queued when there is more in `out`, or at the end */
    enum replies_end end;
    struct reply_slot *first, *last;
    size_t commands;   /* under way: in all slots */
    size_t held;       /* bytes of replies behind an unfinished one, as far as they are there */
    size_t gathered;   /* what slots hold: reply_slot's `gathered` */
    size_t sending;    /* bytes that the client has taken from `out` and not got rid of */
    struct buffer out; /* replies that may leave */
    bool resp3;        /* the protocol of what the client asks from now on */
    bool muted;        /* CLIENT REPLY OFF: commands from now on get no reply */
    struct reply_slot *whole; /* commands from now on are parts of its; NULL: of none */
    bool no_fallback; /* the cache alone may answer: it knows what this client's user may read */
    struct buffer unheard; /* what the last of these got, until replies_drop_unheard() */
    bool slow; /* has held up a shared connection for longer than those who share it can bear */
    struct lookup *to_load, *last_to_load; /* row_loads.c's, and the two that follow */
    size_t to_load_count;
    unsigned loading; /* lookups that are with the keeper */
    struct {
        unsigned count; /* of all that were given to the keeper */
        unsigned last;  /* the latest of them that the database has answered, */
        int keyspace;   /* and of which keyspace it is */
    } asked;
    unsigned at_replicas;    /* requests that replicas have not answered yet */
    uint64_t origin;         /* where the client is; loads of one origin share its turns */
    uint64_t loads;          /* asked for so far */
    struct upstream *stalls; /* not read from before the client has taken more of a large reply */
};

/* There will be no more of them. */
static inline bool replies_have_ended(const struct replies *replies)
{
    return replies->end > REPLIES_PACED;
}

/* Where a reply that is ready now goes: out, or behind the slots that still wait. */
struct buffer *replies_ready(struct replies *replies);

/* Gives back what a large reply took that was not to be heard; its command is done. */
void replies_drop_unheard(struct replies *replies);

/* What answers no command: goes between replies, before that of `next`; NULL: behind all of them.
 */
void replies_push(struct replies *replies, const struct reply_slot *next, struct span bytes);

/* Likewise, in one step: behind the reply of `slot`, and what is ready right behind that. */
void replies_push_behind(struct replies *replies, struct reply_slot *slot, struct span bytes);

/* Bytes of replies that wait for the client. */
size_t replies_waiting(const struct replies *replies);

/* Of these, or not yet of these: of ready ones at the tail, which more may join. */
size_t replies_open(const struct replies *replies);

/* The client goes: everybody who still owes a slot an answer keeps it, and what nobody has been
 * asked for yet is not needed. */
void replies_abandon(struct replies *replies);

/* A slot at the queue's tail that waits for one thing: the reply_slot_answered() of whoever opened
 * it. */
struct reply_slot *reply_slot_open(struct replies *replies, const struct reply_slot_kind *kind);

/* Where the slot's reply is to be written: straight out when the slot is its queue's head. */
struct buffer *reply_slot_output(struct reply_slot *slot);

/* There was no memory for bytes that a peer has chosen the size of: the client goes, for a reply
 * that lacks bytes must not reach it. An abandoned slot is not read any more. */
void reply_slot_starve(struct reply_slot *slot);

/* Appends such bytes to the slot's reply, or to a part of it; the second makes room for the caller,
 * who appends them at once. False: the slot has starved. */
static inline bool reply_slot_append(struct reply_slot *slot, struct buffer *to, struct span bytes)
{
    bool has = buffer_try_append(to, bytes.at, bytes.length);
    if (!has)
        reply_slot_starve(slot);
    return has;
}

static inline bool reply_slot_reserve(struct reply_slot *slot, struct buffer *to, size_t room)
{
    bool has = buffer_try_reserve(to, room) != NULL;
    if (!has)
        reply_slot_starve(slot);
    return has;
}

/* Copies the keys of the lookups: `count` of them, all of them NOT_GUARDED yet. The first is for as
 * many as a peer likes. False: there is no memory for them, and the slot has no lookups. */
bool reply_slot_try_lookups(struct reply_slot *slot, const struct span *keys, size_t count);
void reply_slot_set_lookups(struct reply_slot *slot, const struct span *keys, size_t count);

/* The same in two steps, the second of them for some at a time: room for so many lookups, whose
 * keys have so many bytes, and the next of them. */
bool reply_slot_try_lookup_room(struct reply_slot *slot, size_t count, size_t bytes);
void reply_slot_add_lookups(struct reply_slot *slot, const struct span *keys, size_t count);

/* Likewise of keys that are in the slot's memory already, or will be before they are looked at. */
bool reply_slot_try_lookup_places(struct reply_slot *slot, size_t count);
void reply_slot_add_lookup(struct reply_slot *slot, struct span key);

/* Memory that the slot's command takes beside that, in bytes; and that it takes no more. */
void reply_slot_hold(struct reply_slot *slot, size_t bytes);
void reply_slot_let_go(struct reply_slot *slot, size_t bytes);

/* One of several lookups is answered: what is appended to the slot's `reply` between the two calls
 * is its part, unless it is nothing. */
size_t lookup_begin(const struct lookup *lookup);
void lookup_end(struct lookup *lookup, size_t begun);

/* At the end, before reply_slot_output() is written to: all parts, which the caller frees; and one
 * in them. */
struct buffer reply_slot_take_answers(struct reply_slot *slot);
struct span lookup_answer(const struct lookup *lookup, const struct buffer *answers);

/* The same for a slot that looks up one key and nothing else. */
void reply_slot_set_lookup(struct reply_slot *slot, struct span key, int keyspace);

/* A piece of a reply that the cache is still sending; reply_slot_cache_reply() will bring the rest.
 */
void reply_slot_cache_part(struct reply_slot *slot, struct span bytes);

/* The cache's two kinds of answers; each ends with reply_slot_answered(). (The keeper's:
 * row_loads.h.) */
void reply_slot_cache_reply(struct reply_slot *slot, unsigned index, struct span reply);
void reply_slot_cache_failure(struct reply_slot *slot, unsigned index, const char *why);

/* Whether somebody still waits for the slot's reply. Asked before an answer is added to it: it ends
 * a client that does not read its replies, and paces one whose replies pile up behind a late one.
 * (The second is for the first alone: it counts exactly.) */
bool reply_slot_stays_wanted(const struct reply_slot *slot);
static inline bool reply_slot_is_wanted(const struct reply_slot *slot)
{
    const struct replies *replies = slot->replies;
    if (!replies)
        return false;
    size_t most = buffer_length(&replies->out) + replies->sending + replies->held +
                  (replies->last ? buffer_length(&replies->last->reply) : 0);
    return most <= slot->serving->held_limit || reply_slot_stays_wanted(slot);
}

/* One answer less to wait for. At zero the slot is finished, and the client's queue moves on; the
 * slot may be gone then. (The second is for the first alone: it was the last.) */
void reply_slot_finished(struct reply_slot *slot);
static inline void reply_slot_answered(struct reply_slot *slot)
{
    if (slot->waiting > 1)
        slot->waiting--;
    else
        reply_slot_finished(slot);
}

/* Its client has gone, and the keeper loads nothing for it: what it has gathered goes back. */
void reply_slot_has_gone(struct reply_slot *slot);

/* What a part of the slot's command came to, which had no slot. */
void reply_slot_part(struct reply_slot *whole, struct span reply);

/* Gives back the slots of those parts that are answered, which else wait behind the whole for their
 * turn to leave. */
void reply_slot_drop_parts(struct reply_slot *whole);

/* Frees the slots that the worker keeps for reuse. */
void reply_slot_free_store(struct serving *serving);

#endif
