/* The way to every worker: what the keeper says to one it says to all, in the same order. */
#ifndef NESTGUARD_OUTLET_H
#define NESTGUARD_OUTLET_H

#include "base/mailbox.h"

/* Zeroed: there are no workers yet. */
struct outlet {
    struct mailbox *sender; /* to which all messages come back */
    struct mailbox **to;
    unsigned count;
};

#endif
