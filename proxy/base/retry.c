/* Several who wait share one timer, which goes to the earliest: so 0, no time at all, must never
 * count as the earliest of two.
 */
#include "base/retry.h"

static const struct backoff_bounds bounds = {100, 5000};

void retry_set(struct retry *retry, uint64_t now)
{
    retry->at = now + backoff_next(&retry->backoff, &bounds);
}

void retry_set_soon(struct retry *retry, uint64_t now)
{
    backoff_reset(&retry->backoff);
    retry_set(retry, now);
}

void retry_if_due(struct retry *retry, uint64_t now)
{
    if (retry->at <= now)
        retry->at = 0;
}

uint64_t retry_earlier(uint64_t one, const struct retry *retry)
{
    return retry->at && (!one || retry->at < one) ? retry->at : one;
}
