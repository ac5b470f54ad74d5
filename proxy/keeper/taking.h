/* Entries that another process sends, on their way into our table and to our workers, and what it
 * is answered: that it may count on one.
 */
#ifndef NESTGUARD_TAKING_H
#define NESTGUARD_TAKING_H

#include "keeper/changes/entries.h"

struct applying;

struct taking {
    struct entries *entries;
    void (*answer)(void *arg); /* once for each entry that is to be answered, in their order */
    void *arg;
    struct applying *newest; /* of those that not every worker has yet; NULL: all have */
};

/* One as told_entry_write() has written it; what is not one is left alone. is_answered: when every
 * worker has it, or at once where none needs it. */
void taking_take(struct taking *taking, struct span bytes, bool is_answered);

#endif
