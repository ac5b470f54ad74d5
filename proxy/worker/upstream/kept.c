#include "worker/upstream/kept.h"

#include <assert.h>

enum { KEEP_BYTES = 256 * 1024 };

static uint64_t end_of(const struct kept *kept)
{
    return kept->begin + buffer_length(&kept->bytes);
}

static void forget_before(struct kept *kept, uint64_t oldest)
{
    if (!buffer_length(&kept->bytes))
        kept->begin = oldest;
    assert(kept->begin <= oldest && oldest <= end_of(kept));
    buffer_take(&kept->bytes, (size_t)(oldest - kept->begin));
    kept->begin = oldest;
    buffer_trim(&kept->bytes, KEEP_BYTES);
}

bool kept_copy(struct kept *kept, uint64_t oldest, uint64_t place, struct span out)
{
    forget_before(kept, oldest);
    assert(end_of(kept) >= place && end_of(kept) - place <= out.length);
    size_t copied = (size_t)(end_of(kept) - place);
    return buffer_try_append(&kept->bytes, out.at + copied, out.length - copied);
}

struct span kept_bytes(const struct kept *kept, uint64_t begin, uint64_t end)
{
    struct span all = buffer_span(&kept->bytes);
    assert(kept->begin <= begin && begin <= end_of(kept));
    uint64_t last = end < end_of(kept) ? end : end_of(kept);
    return (struct span){all.at + (begin - kept->begin), (size_t)(last - begin)};
}

void kept_clear(struct kept *kept)
{
    buffer_clear(&kept->bytes);
}

void kept_finish(struct kept *kept)
{
    buffer_finish(&kept->bytes);
}
