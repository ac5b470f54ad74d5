/* What was taken leaves its buffer at the next call, so that the span which was given stays good.
 */
#include "worker/upstream/kept.h"

#include <assert.h>

enum { KEEP_BYTES = 256 * 1024 };

static void drop_taken(struct kept *kept)
{
    buffer_take(&kept->bytes, kept->taken);
    kept->begin += kept->taken;
    kept->taken = 0;
    if (!buffer_length(&kept->bytes))
        buffer_trim(&kept->bytes, KEEP_BYTES);
}

void kept_begin(struct kept *kept, uint64_t place, unsigned hops)
{
    struct kept_command command = {place, hops};
    drop_taken(kept);
    if (!buffer_length(&kept->commands))
        kept->begin = place;
    buffer_append(&kept->commands, &command, sizeof command);
}

void kept_copy(struct kept *kept, uint64_t place, struct span out)
{
    drop_taken(kept);
    uint64_t end = kept->begin + buffer_length(&kept->bytes);
    if (!buffer_length(&kept->commands))
        return;
    assert(end >= place && end - place <= out.length);
    size_t copied = (size_t)(end - place);
    buffer_append(&kept->bytes, out.at + copied, out.length - copied);
}

static const struct kept_command *first(const struct kept *kept)
{
    return (const struct kept_command *)(const void *)buffer_span(&kept->commands).at;
}

struct span kept_take(struct kept *kept, unsigned *hops)
{
    drop_taken(kept);
    struct kept_command command = *first(kept);
    struct span bytes = buffer_span(&kept->bytes);
    buffer_take(&kept->commands, sizeof command);
    if (buffer_length(&kept->commands))
        bytes.length = (size_t)(first(kept)->begin - command.begin);
    kept->taken = bytes.length;
    *hops = command.hops;
    return bytes;
}

void kept_clear(struct kept *kept)
{
    buffer_clear(&kept->commands);
    buffer_clear(&kept->bytes);
    kept->taken = 0;
}

void kept_finish(struct kept *kept)
{
    buffer_finish(&kept->commands);
    buffer_finish(&kept->bytes);
}
