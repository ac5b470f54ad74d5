/* What a build hands over is taken out member by member, by whoever needs it; what is left goes
 * here. A stream that nobody started takes its slot along, at once and on any thread.
 */
#include "build/built.h"

#include <stdlib.h>

const char *build_phase_text(enum build_phase phase)
{
    static const char *const texts[] = {
        [BUILD_CONNECTING] = "connecting",
        [BUILD_SURVEYING] = "looking at publication and tables",
        [BUILD_WAITING] = "waiting for the slot: transactions that are under way must end first",
        [BUILD_LOCKING] = "locking the tables",
        [BUILD_COUNTING] = "counting the rows",
        [BUILD_COPYING] = "copying"};
    return texts[phase];
}

void built_finish(struct built *built)
{
    generation_release(built->generation);
    shared_config_release(built->config);
    if (built->stream)
        pg_stream_close(built->stream, NULL, NULL);
    free(built->tables);
    free(built->identities);
    free(built->fingerprint);
    free(built->values);
    for (size_t i = 0; built->faults && i < built->keyspaces; i++)
        free(built->faults[i]);
    free(built->faults);
    snapshot_finish(&built->snapshot);
    *built = (struct built){0};
}
