/* Keys that the keeper is at work for: a load on its way, an absence remembered, a deletion under
 * way. A worker looks here before a write or a deletion of a guarded key goes to the cache: only of
 * these the keeper must hear. Mostly there is nothing to tell, and the write costs nothing more.
 *
 * Counters by hash, shared by all threads: a key may be taken for watched that is not, never the
 * other way round. The keeper watches a key before it asks the database; so whoever finds it
 * unwatched wrote before the question was sent, and the answer will know of the write.
 */
#ifndef NESTGUARD_WATCH_H
#define NESTGUARD_WATCH_H

#include "guard/key.h"
#include <stdbool.h>

struct watch;

struct watch *watch_create(size_t keys); /* good for about so many watched at once */
void watch_destroy(struct watch *watch); /* NULL is allowed */

/* The keeper. Each add needs its drop. NULL: nobody looks. */
void watch_add(struct watch *watch, struct key key);
void watch_drop(struct watch *watch, struct key key);

bool watch_has(const struct watch *watch, struct key key); /* any thread */

#endif
