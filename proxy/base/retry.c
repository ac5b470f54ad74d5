#include "base/retry.h"

enum { MIN_MS = 100, MAX_MS = 5000 };

void retry_set(struct retry *retry, uint64_t now)
{
    retry->wait_ms = retry->wait_ms ? 2 * retry->wait_ms : MIN_MS;
    if (retry->wait_ms > MAX_MS)
        retry->wait_ms = MAX_MS;
    retry->at = now + retry->wait_ms;
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
