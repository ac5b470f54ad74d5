/* Commands that take keys out of the cache though their rows do not say DELETE: by a time that is
 * over, a new name, or another place. An application that has changed a row invalidates its key by
 * them as well, so what is on its way to the cache for it must not stay.
 */
#ifndef NESTGUARD_VANISHING_H
#define NESTGUARD_VANISHING_H

#include "worker/command/keys/write_keys.h"

/* The keys that go with this command, which makes none: EXPIRE of a time that is over and its kin,
 * GETEX likewise, MOVE, MIGRATE; none if it is another. Of any request. */
struct write_keys vanishing_keys(const struct request *request);

static inline bool vanishing_has(const struct request *request)
{
    struct write_keys keys = vanishing_keys(request);
    return keys.end > keys.first;
}

/* The key that goes with a command that makes others: RENAME's source; or 0. */
size_t vanishing_source(const struct request *request);

/* Whether all keys go, or are others from now on: FLUSHALL, FLUSHDB, SWAPDB. */
bool vanishing_has_all(const struct request *request);

/* Whether a point in time, in units of so many ms, is over by whichever clock: it was a day ago by
 * this one. What has expired then was never there for anybody. */
bool vanishing_is_long_over(struct span text, int64_t unit);

#endif
