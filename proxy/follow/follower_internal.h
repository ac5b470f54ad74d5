/* What the parts of a follower share:
 *
 *   follower_stream.c   the stream, and which transaction its messages belong to
 *   follower_rows.c     a message about rows ─▶ changes of its transaction
 *   follower_depends.c    the same of tables that values are made of beside their row
 *   follower_end.c      the end of a transaction: its changes are carried out, or taken back
 *   follower_removals.c   removals, which wait for a word more
 *
 * Functions that return a status have said in `why` what is wrong when it is negative: a fault.
 */
#ifndef NESTGUARD_FOLLOWER_INTERNAL_H
#define NESTGUARD_FOLLOWER_INTERNAL_H

#include "follow/follower.h"
#include "follow/removals.h"
#include "follow/transaction.h"

/* A transaction whose end the log has told, while what that end means is carried out. */
struct ending {
    struct transaction *transaction; /* NULL: there is none */
    bool committed;
    bool adding; /* what is due comes first; then all is gone through once more */
    uint64_t lsn, end_lsn;
    int64_t time_us;
};

/* A table that the stream tells of. */
struct followed {
    int keyspace;
    const struct dependency *dependency; /* NULL: the keyspace's own table */
};

struct follower {
    struct pg_stream *stream;
    uv_idle_t idle; /* for the next slice of an ending */
    unsigned handles;
    const struct config *config;
    struct generation *generation;
    struct change_sink changes;
    struct follower_events events;
    void *arg;
    struct followed *followed; /* in the order of config_followed() */
    size_t followed_count;
    uint32_t *tables;          /* of each of them */
    char *identities;          /* a letter of each, as of the build */
    uint32_t described;        /* the one whose next row is told by the identity that was described
                                  last: its own, or a partition's; 0: none */
    bool *lacking;             /* of each place of that table: the identity lacks the key */
    struct transaction *whole; /* the one after the other that come whole, when committed */
    struct transaction **streamed; /* those that come in pieces, while they are in progress */
    size_t streamed_count, streamed_size;
    size_t *room; /* in each filter, for what the open one inserts, if it is in progress */
    struct transaction *open; /* the one whose changes come now; NULL: none */
    struct ending ending;
    bool *left;                /* keyspaces of which the ending has seen CHANGE_LEFT */
    struct removals *removals; /* of committed transactions, not carried out yet */
    uint64_t descriptions;     /* how many have come */
    struct follower_counts counts;
    struct buffer new_key, old_key;
    bool held; /* the stream: until an ending is carried out, or there is room again */
    bool ended, closed;
    char why[256]; /* the fault */
};

/* Its `format` holds one %s. Returns a negative errno. */
int follower_fault(struct follower *follower, const char *format, const char *detail);

/* The same of what concerns one keyspace; its `format` holds one %s, for the name, or none. 0 where
 * the others are followed without it. */
int follower_give_up(struct follower *follower, int keyspace, const char *format);
const char *follower_keyspace(const struct follower *follower, int keyspace); /* its name */

/* Of a configuration, which outlives it: in the order of config_followed(); on the heap. */
struct followed *follower_followed(const struct config *config);

/* Keeps a change of the open transaction until its end. */
int follower_keep(struct follower *follower, uint32_t subxid, const struct change *change);

/* Of the table in this place, one that values depend on: its rows; its description; and that all of
 * the keyspace's values may be old by it. */
int follower_take_depended(struct follower *follower, size_t place,
                           const struct pgoutput_event *event);
int follower_describe_depended(struct follower *follower, size_t place,
                               struct pgoutput_relation described);
/* Of the table in this place: the key that its rows tell; without columns where they tell none. */
struct key_template follower_key(const struct follower *follower, size_t place);
bool follower_has_identity(const struct follower *follower, size_t place,
                           struct pgoutput_relation described); /* that of the build */
int follower_depended(struct follower *follower, const struct followed *followed, uint32_t subxid);

/* Puts a key into the filter of a keyspace, or takes it out. */
int follower_put_in(struct follower *follower, int keyspace, struct span key);
int follower_take_out(struct follower *follower, int keyspace, uint64_t hash);
uint64_t follower_hash(const struct follower *follower, struct span key);

/* Relation, Insert, Update, Delete and Truncate of the open transaction. */
int follower_take(struct follower *follower, const struct pgoutput_event *event);

/* The transaction, one of the follower's, is over; the event says where. Carries out as much as may
 * be done at once; the rest is done on the loop. */
int follower_begin_ending(struct follower *follower, struct transaction *transaction,
                          bool committed, const struct pgoutput_event *event);

/* A committed transaction has deleted a row with this key: it goes now or when that is vouched for.
 */
int follower_remove(struct follower *follower, const struct change *change);

/* One removal of the round that is under way is carried out, or held on. 1; 0 at its end. */
int follower_next_removal(struct follower *follower);

/* Whether the stream must wait for removals to be carried out. */
bool follower_is_crowded(const struct follower *follower);

void follower_ask_for_word(struct follower *follower); /* for removals, if there are any */

/* Holds the stream, or lets it go on, and sees to what is left of an ending and of removals: after
 * whatever either depends on. */
void follower_settle(struct follower *follower);

/* Tells the fault, if it was not told yet. */
void follower_end(struct follower *follower);

#endif
