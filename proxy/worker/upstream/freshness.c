/* That a replica is linked proves nothing, and is asked for all the same: one that has lost its
 * primary is not to be read while that has nothing to tell.
 */
#include "worker/upstream/freshness.h"

void freshness_note(struct freshness *freshness, const struct redis_standing *primary,
                    uint64_t asked)
{
    bool is_known = primary->role == REDIS_PRIMARY && primary->history[0];
    if (!is_known || strcmp(freshness->history, primary->history) != 0)
        *freshness = (struct freshness){0};
    if (!is_known)
        return;
    memcpy(freshness->history, primary->history, sizeof freshness->history);
    unsigned place = freshness->count++ % FRESHNESS_WORDS;
    freshness->words[place].asked = asked;
    freshness->words[place].offset = primary->offset;
}

static uint64_t latest(const struct freshness *freshness, uint64_t offset)
{
    uint64_t asked = 0;
    for (unsigned i = 0; i < FRESHNESS_WORDS && i < freshness->count; i++)
        if (freshness->words[i].offset <= offset && freshness->words[i].asked > asked)
            asked = freshness->words[i].asked;
    return asked;
}

uint64_t freshness_of(const struct freshness *freshness, const struct redis_standing *replica,
                      const char **why)
{
    uint64_t asked = 0;
    if (replica->role != REDIS_REPLICA)
        *why = "it is no replica, or does not let INFO be asked";
    else if (!replica->is_linked)
        *why = "its link to its primary is down, or it is being copied to";
    else if (!freshness->count)
        *why = "its primary does not say how far it is";
    else if (strcmp(freshness->history, replica->history) != 0)
        *why = "it does not follow this primary";
    else if (!(asked = latest(freshness, replica->offset)))
        *why = "it is too far behind its primary";
    return asked;
}
