#include "guard/fair_share.h"

size_t fair_share_part(size_t most, size_t divisor)
{
    return most / divisor ? most / divisor : 1;
}

/* A quarter of less than four places is none: then all are for whoever comes. */
bool fair_share_allows(const struct fair_share *share)
{
    size_t most = share->most;
    bool has_few = share->host <= fair_share_part(most, share->few);
    return share->used <= (has_few ? most : most - most / 4);
}
