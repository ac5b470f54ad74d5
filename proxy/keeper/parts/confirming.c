/* The one state beside it, whether a generation serves, is replication.c's, who also holds and
 * releases trackers by what is said here.
 */
#include "keeper/parts/confirming.h"

#include "base/clock.h"

void confirming_open(struct confirming *confirming, uv_loop_t *loop, const struct config *config,
                     bool follows)
{
    *confirming = (struct confirming){.limit = UINT64_MAX};
    if (follows)
        confirming->confirmer = confirmer_create(loop, config);
}

void confirming_use_config(struct confirming *confirming, const struct config *config)
{
    if (confirming->confirmer)
        confirmer_use_config(confirming->confirmer, config);
}

void confirming_close(struct confirming *confirming)
{
    confirmer_destroy(confirming->confirmer);
    confirming->confirmer = NULL;
}

void confirming_everything(struct confirming *confirming)
{
    if (confirming->confirmer && confirming->voice == VOICE_OWN && confirming->limit == UINT64_MAX)
        confirmer_begin(confirming->confirmer);
}

bool confirming_ends_everything(struct confirming *confirming)
{
    uint64_t confirmed = confirming->confirmer ? confirmer_end(confirming->confirmer) : 0;
    if (confirmed)
        confirming_remember(confirming, confirmed);
    return confirmed != 0;
}

void confirming_remember(struct confirming *confirming, uint64_t position)
{
    if (position > confirming->confirmed)
        confirming->confirmed = position;
    confirming->until = clock_ms();
}

bool confirming_is_known(const struct confirming *confirming, const struct lag *lag)
{
    return lag->position >= confirming->confirmed || lag->known > confirming->until;
}

bool confirming_speak(struct confirming *confirming)
{
    if (confirming->voice == VOICE_OWN)
        return false;
    confirming->voice = VOICE_OWN;
    confirming_remember(confirming, 0);
    return true;
}
