/* Keys that were filled while no log was followed.
 *
 * A row that changes behind such a key's query and before the log is followed is told by nobody. So
 * the key is remembered until a log is followed, whatever is asked from then on being vouched for
 * by it, and then purged.
 *
 * Memory is bounded: past it a keyspace is remembered whole.
 */
#ifndef NESTGUARD_UNVOUCHED_H
#define NESTGUARD_UNVOUCHED_H

#include "guard/key.h"
#include <stddef.h>

struct unvouched;

/* For keyspaces with numbers below `keyspaces`. */
struct unvouched *unvouched_create(size_t keyspaces, size_t max_keys);
void unvouched_destroy(struct unvouched *unvouched); /* NULL is allowed */

void unvouched_add(struct unvouched *unvouched, struct key key);

/* Calls `all` for each keyspace that is remembered whole and `one` for each key of the others; then
 * forgets them. The keys live until the call returns. */
void unvouched_give(struct unvouched *unvouched, void (*all)(void *arg, int keyspace),
                    void (*one)(void *arg, struct key key), void *arg);

#endif
