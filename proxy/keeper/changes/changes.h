/* The one place where it is decided what the change of a key means, and to whom:
 *
 *   log ─────────────┐                    ┌▶ checks      a round of a check about it proves nothing
 *   a client         ├▶ changes_tell()    ├▶ visibility  queries may not see it yet
 *   an override      │        │           ├▶ loads       what is loaded or remembered of it is old
 *   no log any more ─┘        ▼           ├▶ cache       it is deleted there
 *                      table of causes ───┼▶ calls       a call that asked for its row asks again
 *                                         ├▶ entries     what its override said is known now
 *                                         ├▶ published   what applications read for themselves
 *                                         ├▶ renewal     a new generation is wanted
 *                                         └▶ sources     a key of no row is known from here on
 */
#ifndef NESTGUARD_CHANGES_H
#define NESTGUARD_CHANGES_H

#include "guard/change.h"

/* In the order in which they are told. */
enum subscriber {
    SUBSCRIBER_FN_CHECKS,
    SUBSCRIBER_UNSEEN,
    SUBSCRIBER_LOADS,
    SUBSCRIBER_CACHE,
    SUBSCRIBER_CALLS,
    SUBSCRIBER_ENTRIES,
    SUBSCRIBER_PUBLISHED,
    SUBSCRIBER_RENEWAL,
    SUBSCRIBER_SOURCES,
    SUBSCRIBERS
};

/* Zeroed: nobody is told. */
struct changes {
    struct change_sink subscribers[SUBSCRIBERS];
};

/* One for each; NULL: nobody any more. */
void changes_subscribe(struct changes *changes, enum subscriber subscriber,
                       void (*hear)(void *arg, const struct key_change *change), void *arg);

/* Tells those whom the cause concerns, one after the other, before it returns. A subscriber may
 * tell of a change itself: purging does. Nobody may subscribe meanwhile. */
void changes_tell(const struct changes *changes, const struct key_change *change);

/* For who cannot see this room. */
struct change_sink changes_sink(struct changes *changes);

/* Whether it is told of any key of a keyspace, and not of one. */
bool cause_is_of_keyspace(enum cause cause);

#endif
