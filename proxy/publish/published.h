/* One published filter, from the bits in memory to the bits in the cache:
 *
 *   a generation's bitmap ─▶ WAITING ─▶ ASKING ─ free ─▶ UPLOADING ─▶ COMMITTING ─▶ LIVE
 *                              ▲  ▲        └─ another guard's ─┐          │          │
 *                              │  └────────────────────────────┘          │          │
 *                              └── refused, lost, not kept up with, cache down ◀─────┘
 *
 * Truth. While NAME:lease stands, NAME lacks no row that was committed max_lag ago or longer, and
 * none at all that the lease's last renewal knew of:
 *
 * - A lease is given for what the guard's own filter is given its permission for, until the same
 *   moment, and only when the cache has acknowledged the bits of all rows that were known by then.
 *   Whoever hangs, the guard, the network or the cache, it lapses; nobody ever waits for the cache.
 * - The moment is one of the cache's own clock, which each answer tells: a renewal that is carried
 *   out late, or by nobody's order any more, does not lengthen it.
 * - Bits and leases take effect in one order. So what a cache has after it was restored from a
 *   snapshot, or taken over by a replica, is as true as it was then, until the lease of then ends.
 * - Of what is lost in part (a name deleted or evicted) the next renewal finds out; and a reader at
 *   once, by bit m, which is always set.
 * - A new generation's bitmap is written beside the one that is read, which is kept true meanwhile.
 *
 * One node. In a cluster all names have one slot, and all that belongs to an attempt goes to the
 * node that had it at the beginning, until that is lost, or says that the slot is elsewhere: then,
 * when each command has its answer, it begins again at the node that has it. What another node was
 * given with the slot, or has as the lost one's replica, is not known to be all that was
 * acknowledged, and is not renewed.
 *
 * Two guards: who holds the lease writes, the other one waits until it has lapsed. A guard that was
 * held up meanwhile may still set bits of its own; they do no harm, and its renewals find another's
 * name.
 */
#ifndef NESTGUARD_PUBLISHED_H
#define NESTGUARD_PUBLISHED_H

#include "base/retry.h"
#include "publish/layers.h"
#include "publish/publish_names.h"
#include "redis/redis.h"

enum published_state {
    PUBLISHED_EMPTY, /* there is no generation, or no bitmap of it */
    PUBLISHED_WAITING,
    PUBLISHED_ASKING,
    PUBLISHED_UPLOADING,
    PUBLISHED_COMMITTING,
    PUBLISHED_LIVE
};

/* A moment by which all rows are known, as soon as the cache has answered so many commands. */
struct published_known {
    uint64_t until; /* clock_ms() of the lease's end; 0: none */
    uint64_t count;
};

struct published {
    const struct keyspace *keyspace;
    struct redis *redis;
    int node; /* of a cluster: its number, see "One node"; else 0 */
    const char *owner;
    struct publish_names names;
    enum published_state state;
    struct layers image; /* of the generation in force */
    struct layers old;   /* what the cache has under the name meanwhile, if it is another */
    uint64_t image_id;   /* its `generation` in the cache, and the lease's value */
    uint64_t old_id;
    uint64_t from;                  /* the generation's number */
    uint64_t built;                 /* seconds since 1970 */
    uint64_t keys;                  /* rows now */
    uint64_t deleted;               /* since it was built */
    bool may_lease;                 /* the keyspace guards */
    struct published_known pending; /* waited for; until is 0: nothing is */
    uint64_t acknowledged;          /* as `until`: what a lease may be given for */
    uint64_t sent, answered;        /* commands, of all attempts */
    uint64_t attempts;              /* to write it */
    uint64_t begun;                 /* of `sent`, before the attempt that is under way */
    bool renewing;                  /* one is on its way */
    unsigned next_layer;            /* to be uploaded */
    size_t next_byte;               /* of that layer */
    unsigned pieces;                /* on their way */
    bool spoiled;    /* the image lacked a row, and is given up: a new generation is wanted */
    bool ended;      /* nothing is published here any more, and what there was goes */
    bool removing;   /* that is asked for */
    bool removed;    /* and answered */
    unsigned lapses; /* looks that found another's name without a lease, one after the other */
    int64_t ahead;   /* the cache's clock, before ours, at least */
    uint64_t lease;  /* clock_ms() of its end, as it was asked for last; 0: none */
    struct retry retry;
    char error[256]; /* the last, or "" */
};

/* Of what a keyspace publishes. */
struct published_report {
    const char *key; /* NULL: nothing, and nothing of the rest is there */
    const char *state;
    uint64_t keys, bits, set;
    unsigned functions, layers;
    uint64_t generation; /* as the cache has it */
    uint64_t deleted;    /* rows that are gone, and still in it */
    uint64_t due;        /* 1: the keyspace guards, so that there should be a lease */
    uint64_t lease;      /* ms that are left of it; 0: there is none */
    uint64_t bytes;      /* of the guard's copy */
    const char *error;   /* the last, or "" */
};

void published_init(struct published *published, const struct keyspace *keyspace,
                    struct redis *redis, const char *owner);
void published_finish(struct published *published); /* when no command is under way */

/* A generation takes over: its bitmap (NULL: there is none) is taken. What is in the cache goes on
 * to be true if the generation before was followed without a gap. */
void published_renew(struct published *published, struct bitmap *bitmap, uint64_t from,
                     uint64_t built);
/* There was a gap: rows may be in the newest generation alone. */
void published_gap(struct published *published);

/* Whether leases may be given now. False: the one that stands is ended at once. */
void published_permit(struct published *published, bool may_lease);

/* There is a row with one of these items. */
void published_add(struct published *published, const struct span *items, size_t count);

/* All rows are known that make a lease until then (clock_ms()) right. */
void published_known(struct published *published, uint64_t until);

/* The cache may lack some rows: it gets all of them again. */
void published_fail(struct published *published, const char *why);
/* It cannot be told which items a row has: the image lacks it, too. Another generation is wanted,
 * which reads the row itself. */
void published_spoil(struct published *published, const char *why);

/* The keyspace by another configuration, in which only its name and what a new bitmap would be made
 * like is different: format and rate. */
void published_use(struct published *published, const struct keyspace *keyspace);

/* Nothing is to be published here any more: the lease ends at once, and what is the guard's own in
 * the cache is deleted, by published_tick() where the cache is not up now. Then it is over, and no
 * command is under way. */
void published_end(struct published *published);
bool published_is_over(const struct published *published);

void published_cache_is(struct published *published, bool up);
/* A cluster's node of this number; not up: it may be none any more. */
void published_node_is(struct published *published, int node, bool up);
/* Another cache; nothing is under way to the one before. */
void published_use_cache(struct published *published, struct redis *redis);
void published_tick(struct published *published, uint64_t now); /* once in a while */
void published_drop(struct published *published);               /* the lease; at the end */

/* It should be made anew: it is full, or of too many rows that are gone, or spoiled. */
bool published_is_worn(const struct published *published);

/* Texts live as long as it is not touched. */
struct published_report published_report(const struct published *published);

const char *published_state_name(enum published_state state);

#endif
