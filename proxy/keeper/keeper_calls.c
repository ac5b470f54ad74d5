/* What the control port's calls may do with the keeper; see keeper.h. */
#include "keeper/keeper_internal.h"

#include "base/clock.h"

const struct traffic *keeper_traffic(const struct keeper *keeper)
{
    return keeper->accounting.traffic;
}

uint64_t keeper_fresh_rejects(const struct keeper *keeper, uint64_t *ms)
{
    return accounting_fresh_rejects(&keeper->accounting, keeper->workers, clock_ms(), ms);
}

const struct config *keeper_config(const struct keeper *keeper)
{
    return publishing_config(&keeper->publishing);
}

uint64_t keeper_rebuild(struct keeper *keeper)
{
    sources_renew(&keeper->sources);
    return keeper->draining ? 0 : renewal_begin(&keeper->renewal);
}

struct keeper_parts keeper_parts(struct keeper *keeper)
{
    return (struct keeper_parts){&keeper->entries, &keeper->loading, &keeper->purging,
                                 &keeper->touches, &keeper->pushes};
}
