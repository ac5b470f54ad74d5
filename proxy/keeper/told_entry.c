/* The fixed part stands before the key, as the machine has numbers: both run on it. */
#include "keeper/told_entry.h"

#include "base/clock.h"

#include <string.h>

struct entry_frame {
    uint64_t ms, blocked_ms;
    uint8_t kind, sticky;
};

static uint64_t left_of(uint64_t until, uint64_t now)
{
    return until > now ? until - now : 0;
}

void told_entry_write(struct buffer *out, struct key key, struct override entry)
{
    uint64_t now = clock_ms();
    struct entry_frame frame = {.ms = left_of(entry.until, now),
                                .blocked_ms = left_of(entry.blocked_until, now),
                                .kind = (uint8_t)entry.kind,
                                .sticky = entry.sticky};
    buffer_append(out, &frame, sizeof frame);
    buffer_append(out, key.text.at, key.text.length);
}

bool told_entry_read(struct told_entry *out, struct span bytes)
{
    struct entry_frame frame;
    if (bytes.length < sizeof frame)
        return false;
    memcpy(&frame, bytes.at, sizeof frame);
    *out = (struct told_entry){frame.ms,
                               frame.blocked_ms,
                               (enum override_kind)frame.kind,
                               frame.sticky,
                               {bytes.at + sizeof frame, bytes.length - sizeof frame}};
    return true;
}

/* A hint is taken as if it had been given here, now: by our clock, and ended by our generations.
 * That it has ended there means nothing here, where the log may not be as far. A tombstone is not
 * taken: the row may have come back, and our log have told so before this came; without it the
 * database is asked. */
struct override told_entry_here(const struct told_entry *told, const struct entries *entries,
                                struct key key)
{
    struct override entry = entries_find(entries, key);
    if (told->kind == OVERRIDE_HINT) {
        struct override hint = entries_hint(entries, told->sticky ? 0 : told->ms + 1);
        hint.until = clock_ms() + told->ms;
        entry = override_admit(entry, hint);
    }
    entry.blocked_until = told->blocked_ms ? clock_ms() + told->blocked_ms : 0;
    return entry;
}
