/* What is kept is the last wait in full, and only what is given away is drawn: so the waits of a
 * row of refusals double whatever the drawing gave. */
#include "net/backoff.h"

#include <stdlib.h>

uint64_t backoff_next(struct backoff *backoff, const struct backoff_bounds *bounds)
{
    uint64_t wait = 2 * backoff->wait_ms;
    if (wait < bounds->least_ms)
        wait = bounds->least_ms;
    if (wait > bounds->most_ms)
        wait = bounds->most_ms;
    backoff->wait_ms = wait;
    return wait - arc4random_uniform((uint32_t)(wait / 4) + 1);
}
