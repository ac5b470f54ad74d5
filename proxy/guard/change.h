/* That a key changed, or what is said of it, and why. Who is told of which is decided in one place:
 * keeper/changes/changes.c.
 */
#ifndef NESTGUARD_CHANGE_H
#define NESTGUARD_CHANGE_H

#include "guard/key.h"

struct generation;

/* Of one key, but for those that say otherwise: these are of a keyspace, of any of its keys. */
enum cause {
    /* The database's log has told, at the commit, that a row with the key */
    CAUSE_INSERTED,  /* came to be */
    CAUSE_UPDATED,   /* was updated, and kept its key */
    CAUSE_DELETED,   /* is gone */
    CAUSE_UNTOLD,    /* of a keyspace: a row was updated whose key is not told */
    CAUSE_TRUNCATED, /* of a keyspace: all rows are gone */
    CAUSE_LEFT,      /* of a keyspace: some are, or not; they were told as CAUSE_UPDATED */
    CAUSE_DEPENDED,  /* of a keyspace: it was of another table, that values are made of, too */

    /* Through the guard */
    CAUSE_WRITTEN, /* a client writes the key to the cache */
    CAUSE_DROPPED, /* a client deletes it there */
    CAUSE_CLEARED, /* of a keyspace, and of all others: a client deletes all keys there */

    /* Its override was set: to a */
    CAUSE_HINT,
    CAUSE_TOMBSTONE,
    CAUSE_BLOCK,
    CAUSE_RELEASE, /* there is none any more, for the log has told */

    /* No log has told */
    CAUSE_UNVOUCHED, /* it was filled while none was followed */
    CAUSE_ASKED,     /* of a keyspace: what is being loaded was asked while none was followed */
    CAUSE_FILLED,    /* of a keyspace: more of its keys were unvouched than are remembered */
    CAUSE_MISSED,    /* of a keyspace: its rows may have changed while none was followed */
    CAUSE_ALTERED,   /* of a keyspace: what its values are made of was altered */
    CAUSE_RENAMED,   /* of a keyspace: its table's name may have led to another table for a while,
                        which then said that there is no row */
    CAUSES
};

struct key_change {
    enum cause cause;
    struct key key; /* with the causes that are of a keyspace, its keyspace alone */
    /* Of what the log tells: the transaction (not a part of another), and whose log it is. */
    uint32_t xid;
    struct generation *generation;
};

/* Who is told. The change lives until the call returns. */
struct change_sink {
    void (*tell)(void *arg, const struct key_change *change);
    void *arg;
};

static inline struct key_change change_of_key(enum cause cause, struct key key)
{
    return (struct key_change){.cause = cause, .key = key};
}

static inline struct key_change change_of_keyspace(enum cause cause, int keyspace)
{
    return (struct key_change){.cause = cause, .key = {.keyspace = keyspace}};
}

#endif
