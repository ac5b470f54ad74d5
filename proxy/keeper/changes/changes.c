/* Read along a row, the table says what a cause means; down a column, what a subscriber hears of.
 * Subscribers are told in the order of their enum: loads before the cache, so that nothing old is
 * filled behind a purge.
 */
#include "keeper/changes/changes.h"

enum {
    FN_CHECKS = 1 << SUBSCRIBER_FN_CHECKS,
    UNSEEN = 1 << SUBSCRIBER_UNSEEN,
    LOADS = 1 << SUBSCRIBER_LOADS,
    CACHE = 1 << SUBSCRIBER_CACHE,
    CALLS = 1 << SUBSCRIBER_CALLS,
    ENTRIES = 1 << SUBSCRIBER_ENTRIES,
    PUBLISHED = 1 << SUBSCRIBER_PUBLISHED,
    RENEWAL = 1 << SUBSCRIBER_RENEWAL,
    SOURCES = 1 << SUBSCRIBER_SOURCES,
    KEYSPACE = 1 << SUBSCRIBERS /* the cause is of a keyspace */
};

/* A change that the log tells may be one that queries do not see yet, and it is the only word that
 * cached values are old. What is said of a key without the log, an entry or a client's write, makes
 * what is being loaded old, for it may contradict it; the client sees to the cache itself. Only who
 * says that the key may have a row concerns calls that were told that there is none. */
static const unsigned told[CAUSES] = {
    /* clang-format off */
    [CAUSE_INSERTED]  = FN_CHECKS | UNSEEN | LOADS | CACHE | CALLS | ENTRIES | PUBLISHED,
    [CAUSE_UPDATED]   = FN_CHECKS | UNSEEN | LOADS | CACHE,
    [CAUSE_DELETED]   = FN_CHECKS | UNSEEN | LOADS | CACHE                   | PUBLISHED,
    [CAUSE_UNTOLD]    =             UNSEEN | LOADS | CACHE                       | KEYSPACE,
    [CAUSE_TRUNCATED] =             UNSEEN | LOADS | CACHE             | RENEWAL | KEYSPACE,
    [CAUSE_LEFT]      =                                                  RENEWAL | KEYSPACE,
    [CAUSE_DEPENDED]  =             UNSEEN | LOADS | CACHE                       | KEYSPACE,
    [CAUSE_WRITTEN]   =                      LOADS         | CALLS,
    [CAUSE_DROPPED]   =                      LOADS         | CALLS,
    [CAUSE_CLEARED]   =                      LOADS                               | KEYSPACE,
    [CAUSE_HINT]      =                      LOADS         | CALLS | SOURCES,
    [CAUSE_TOMBSTONE] =                      LOADS,
    [CAUSE_BLOCK]     =                      LOADS,
    [CAUSE_RELEASE]   =                      LOADS,
    [CAUSE_UNVOUCHED] =                              CACHE,
    [CAUSE_ASKED]     =                      LOADS                               | KEYSPACE,
    [CAUSE_FILLED]    =                              CACHE                       | KEYSPACE,
    [CAUSE_MISSED]    =                      LOADS | CACHE           | PUBLISHED | KEYSPACE,
    [CAUSE_ALTERED]   =                      LOADS | CACHE                       | KEYSPACE,
    [CAUSE_RENAMED]   =                      LOADS         | CALLS | ENTRIES     | KEYSPACE,
    /* clang-format on */
};

void changes_subscribe(struct changes *changes, enum subscriber subscriber,
                       void (*hear)(void *arg, const struct key_change *change), void *arg)
{
    changes->subscribers[subscriber] = (struct change_sink){hear, arg};
}

void changes_tell(const struct changes *changes, const struct key_change *change)
{
    for (unsigned i = 0; i < SUBSCRIBERS; i++) {
        const struct change_sink *subscriber = &changes->subscribers[i];
        if ((told[change->cause] & (1u << i)) && subscriber->tell)
            subscriber->tell(subscriber->arg, change);
    }
}

static void tell(void *changes, const struct key_change *change)
{
    changes_tell(changes, change);
}

struct change_sink changes_sink(struct changes *changes)
{
    return (struct change_sink){tell, changes};
}

bool cause_is_of_keyspace(enum cause cause)
{
    return (told[cause] & KEYSPACE) != 0;
}
