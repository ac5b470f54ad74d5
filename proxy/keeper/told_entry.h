/* An entry (guard/overrides.h) as one process tells another of it: bytes out, bytes in. */
#ifndef NESTGUARD_TOLD_ENTRY_H
#define NESTGUARD_TOLD_ENTRY_H

#include "base/buffer.h"
#include "keeper/changes/entries.h"

struct told_entry {
    uint64_t ms, blocked_ms; /* what is left of its times */
    enum override_kind kind;
    bool sticky;
    struct span key; /* in the bytes that were read */
};

void told_entry_write(struct buffer *out, struct key key, struct override entry);
bool told_entry_read(struct told_entry *out, struct span bytes); /* false: that is none */

/* What it means in this process, beside what the key has here. */
struct override told_entry_here(const struct told_entry *told, const struct entries *entries,
                                struct key key);

#endif
