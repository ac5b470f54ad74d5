/* The false positives that were found out: keys that a filter takes for possible and the database
 * did not have. Bounded; the oldest goes first, and forgetting one only costs another query.
 */
#ifndef NESTGUARD_KNOWN_ABSENT_H
#define NESTGUARD_KNOWN_ABSENT_H

#include "guard/watch.h"
#include <stdbool.h>

struct known_absent {
    struct keymap map;
    size_t limit;
    struct watch *watch;
};

void known_absent_init(struct known_absent *known, size_t limit,
                       struct watch *watch);                       /* watches its keys */
void known_absent_limit(struct known_absent *known, size_t limit); /* from now on */
void known_absent_clear(struct known_absent *known);               /* forgets all */
void known_absent_finish(struct known_absent *known);

void known_absent_add(struct known_absent *known, struct key key);
void known_absent_forget(struct known_absent *known, struct key key);
bool known_absent_has(const struct known_absent *known, struct key key);

#endif
