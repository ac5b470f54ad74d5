/* Overrides that overrule the filter for single keys: hints, tombstones, blocks.
 *
 * The keeper holds the table that counts; each worker holds a copy, changed by the keeper's
 * messages, so that the path of a lookup takes no lock.
 */
#ifndef NESTGUARD_OVERRIDES_H
#define NESTGUARD_OVERRIDES_H

#include "base/peak.h"
#include "guard/key.h"
#include <stdbool.h>
#include <stdint.h>

enum override_kind {
    OVERRIDE_NONE,
    OVERRIDE_HINT,     /* admitted: a writer or the admin says that the key exists */
    OVERRIDE_TOMBSTONE /* rejected: the database said that the row is gone */
};

/* What is known of a key, and beside it the admin's order to refuse it, which ends by itself and
 * leaves what is known as it was. What is known ends: not before `until`, and if it is `sticky` not
 * before another generation is in force than its epoch (number > epoch). A tombstone ends with the
 * next, which may have the row again. A hint is for a row that may not be committed yet: it ends
 * with a generation that knows what was under way when another was begun after the hint
 * (settled > epoch). A sticky entry holds what no log will tell. */
struct override {
    enum override_kind kind;
    bool sticky;
    uint64_t since; /* a hint is one; ms of clock_ms() */
    uint64_t until; /* likewise */
    /* Number of the newest generation that was begun when a hint was made, or that was in force
     * before the database said that a tombstone's row is gone. */
    uint64_t epoch;
    uint64_t blocked_until; /* 0: not blocked */
    unsigned writes;        /* of the key that are under way: while there are any it is admitted */
};

/* For so long after an entry has come some worker, or a process that decides, too, may not have it
 * yet; whoever has not said by then that it has is not waited for any more. */
enum { OVERRIDE_NEW_MS = 5000 };

struct generation;

struct overrides {
    struct keymap map;
    uint64_t in_force, settled; /* of the generation by which entries end; 0: of none */
    size_t places;
    size_t bytes; /* that malloc() has for the entries */
    struct peak peak;
};

/* Entries are weighed, not only counted: a key takes a place, and one more for each so many bytes
 * that it has. */
enum { OVERRIDE_BYTES = 256 };

static inline size_t override_places(size_t key_length)
{
    return 1 + key_length / OVERRIDE_BYTES;
}

/* Empty; to be finished, which frees every entry. */
void overrides_init(struct overrides *overrides);
void overrides_finish(struct overrides *overrides);

/* The generation, or NULL, is in force now. Whatever it ends has ended from here on, however many
 * entries that are; overrides_expire() only drops them. */
void overrides_use_generation(struct overrides *overrides, const struct generation *generation);

/* What is in force: kind is OVERRIDE_NONE and blocked_until is 0 where nothing is. */
struct override overrides_find(const struct overrides *overrides, struct key key, uint64_t now);

/* Replaces the key's entry, but for its `writes`; an empty one drops it. The key is copied. */
void overrides_set(struct overrides *overrides, struct key key, struct override entry);

/* A write of the key has been sent, and has come to its end. Each begin needs its end. */
void overrides_begin_write(struct overrides *overrides, struct key key);
void overrides_end_write(struct overrides *overrides, struct key key);

/* Looks at the `most` entries that it has not looked at for longest, and drops those that have
 * ended. Work is bounded, so that a large table never stalls a loop (see expiry.h). */
void overrides_expire(struct overrides *overrides, uint64_t now, size_t most);

/* Once in a while, behind that: what a burst of entries took, and is not needed any more, goes back
 * to the system. */
void overrides_settle(struct overrides *overrides);

/* Every entry that is in force; of the key, its keyspace is not known here (-1). `visit` must not
 * change the table. */
void overrides_each(const struct overrides *overrides, uint64_t now,
                    void (*visit)(void *arg, struct key key, struct override entry), void *arg);

/* All that have a place: also what has ended and was not looked at since, and keys of which nothing
 * but a write under way is known. 0: no key has an entry of any kind. */
size_t overrides_count(const struct overrides *overrides);

/* The places that all of these take; max_hints is their bound. */
size_t overrides_places(const struct overrides *overrides);

/* A key that is admitted although something is known of it already: what holds longer wins, and a
 * block stays. A hint that is one already is no newer for it. */
struct override override_admit(struct override known, struct override hint);

/* "none", "hint", "tombstone": static. */
const char *override_kind_name(enum override_kind kind);

#endif
