/* The way to every worker: what the keeper says to one it says to all, in the same order. So what a
 * worker hears of a key after a view is decided by that view, at each of them.
 *
 * Each worker gets a message of its own, which comes back when it was obeyed; how many are out is
 * counted by whoever sends them.
 */
#ifndef NESTGUARD_OUTLET_H
#define NESTGUARD_OUTLET_H

#include "base/mailbox.h"

/* Zeroed: there are no workers yet. */
struct outlet {
    struct mailbox *sender; /* to which all messages come back */
    struct mailbox **to;    /* in the order of the workers' indices */
    unsigned count;         /* of those that have begun; none is taken away before the end */
};

#endif
