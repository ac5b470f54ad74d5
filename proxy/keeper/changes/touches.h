/* Keys that calls of the control port are at work for: whether such a key may have a row that the
 * database did not show, for it was written through the guard meanwhile, or the log told of its
 * insertion, or another table may have been asked. They are watched, so that workers tell.
 */
#ifndef NESTGUARD_TOUCHES_H
#define NESTGUARD_TOUCHES_H

#include "guard/watch.h"
#include "keeper/changes/changes.h"

/* A member of the call. */
struct key_touch {
    struct key_touch *next; /* this part's */
    struct key key;
    bool touched;
    /* Set by who waits for the next probe of the database; called once. May close its own call. */
    void (*on_probe)(struct key_touch *touch);
};

struct touches {
    struct watch *watch;
    struct key_touch *first;
};

/* The watch outlives it. It has nothing of its own to free: each call closes its touch. */
void touches_init(struct touches *touches, struct watch *watch);

void touches_open(struct touches *touches, struct key_touch *touch); /* its key is set */
void touches_close(struct touches *touches, struct key_touch *touch);

/* As a subscriber of changes.h, whose `arg` is the touches: the key is touched. */
void touches_hear(void *arg, const struct key_change *change);

/* The database was asked where its log ends, whether it answered or not. */
void touches_probed(struct touches *touches);

#endif
