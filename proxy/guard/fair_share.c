#include "guard/fair_share.h"

enum {
    FREE_TIMES = 3, /* one host alone comes to three quarters then */
    MANY = 1024,    /* places are so many that some are kept: */
    KEPT_PART = 16  /* a part by this divisor */
};

size_t fair_share_part(size_t most, size_t divisor)
{
    return most / divisor ? most / divisor : 1;
}

/* What was free before the last place of it is taken, so that of a few places none is lost. */
bool fair_share_allows(const struct fair_share *share)
{
    if (share->used > share->most)
        return false;
    return share->host <= fair_share_part(share->most, share->few) ||
           share->host <= FREE_TIMES * (share->most - share->used + 1);
}

bool fair_share_is_kept(size_t most, size_t used, size_t host, size_t parts)
{
    size_t kept = most < MANY ? 0 : most / KEPT_PART;
    return used > most - kept && host > fair_share_part(kept, parts);
}
