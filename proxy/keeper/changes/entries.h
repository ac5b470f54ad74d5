/* Overrides on their way to those who decide by them:
 *
 *   control port, ─▶ the table that counts ─▶ every worker's copy ─▶ receipts ─▶ done()
 *   a worker's hint
 *
 * Whoever gave an entry is answered when the last worker has it: from then on no lookup anywhere is
 * decided without it.
 */
#ifndef NESTGUARD_ENTRIES_H
#define NESTGUARD_ENTRIES_H

#include "guard/messages.h"
#include "guard/overrides.h"
#include "guard/view.h"
#include "keeper/changes/changes.h"
#include "keeper/changes/outlet.h"

/* Another process that decides, too: is told of each entry that is set here, and says, in the same
 * order, when it has one. */
struct entries_remote {
    void (*send)(void *arg, struct key key, struct override entry);
    void *arg;
    bool is_awaited; /* whoever gives an entry is answered when the other has it, too */
};

/* Who gave an entry is answered; `known`: by all who decide. Else another process may decide
 * without it, and nobody may be told that the entry holds. */
typedef void (*entries_done)(void *arg, bool known);

struct entries {
    const struct outlet *outlet;
    const struct changes *changes; /* are told of each entry */
    const struct view *view;       /* decided by now */
    struct overrides table;
    struct entries_remote remote;    /* zeroed: there is none */
    struct broadcast *first, **last; /* those that it does not have yet */
    size_t under_way;                /* to it, or to a worker */
    bool ending;                     /* no worker takes an entry any more */
    bool stranded;                   /* another process decides, and hears of nothing any more */
};

/* Both outlive it. A view must be in use before any entry is set. */
void entries_init(struct entries *entries, const struct outlet *outlet,
                  const struct changes *changes);
void entries_finish(struct entries *entries);

/* Decides by this view from now on; the one before is not looked at any more. */
void entries_use_view(struct entries *entries, const struct view *view);
void entries_end(struct entries *entries); /* nothing is set from here on */

/* Whether anybody takes an entry: not at the end, unless another process does. */
bool entries_are_taken(const struct entries *entries);

/* What is in force for the key. */
struct override entries_find(const struct entries *entries, struct key key);

/* 0 when entries_set() would set an entry of this key, other than a tombstone that is too late;
 * else what it would return. */
int entries_have_room(const struct entries *entries, struct key key);

/* Sets an entry here and in every worker, and tells of the change; `done` (may be NULL) is called
 * when every worker has it, never before this has returned. -ENOSPC when the table is full of
 * others, -ESHUTDOWN at the end, -ESTALE of a tombstone whose keyspace has retired: then nothing is
 * done. */
int entries_set(struct entries *entries, struct key key, struct override entry, entries_done done,
                void *arg);

/* The same without looking whether there is room: of a hint its worker has seen to that
 * (guard/hint_share.h). At the end only while there is another process that is told: then that
 * alone has it. */
void entries_put(struct entries *entries, struct key key, struct override entry, entries_done done,
                 void *arg);

/* The same of an entry that the other process has sent: that one knows. */
void entries_put_here(struct entries *entries, struct key key, struct override entry,
                      entries_done done, void *arg);

/* The other process has the oldest that it did not have; or is not there any more, and decides
 * nothing; or it decides, for all we know, and cannot be told: what it does not have by now is not
 * known, nor is anything that is set from here on. */
void entries_remote_has(struct entries *entries);
void entries_remote_lost(struct entries *entries);
void entries_strand(struct entries *entries);
uint64_t
entries_remote_owes(const struct entries *entries); /* since then (clock_ms()); 0: nothing */

/* Each entry that was set until now is known by all who decide. */
bool entries_are_everywhere(const struct entries *entries);

/* An entry has come back from a worker. */
void entries_take_back(struct override_message *message);

/* Whether the key has an entry that the log's word of its row ends. */
bool entries_wait_for(const struct entries *entries, struct key key, bool serving);

/* The log tells of the key's row: what its entry says is known now, if `serving`, the generation
 * that serves has it; a tombstone ends in any case, and is a hint for a moment. false: nothing had
 * to be ended, or could. */
bool entries_know(struct entries *entries, struct key key, bool serving, entries_done done,
                  void *arg);

/* Ends all tombstones: the database's word, which they are by, may have been of other tables. The
 * filter, and who is asked then, say what is so. */
void entries_unbury(struct entries *entries);

/* An entry that begins now. for_ms 0: for as long as the sync mode needs it. */
struct override entries_hint(const struct entries *entries, uint64_t for_ms);

/* Likewise; to be made before the database is asked for the row: a generation that is in force by
 * the time of its answer may have a row that has come since. */
struct override entries_tombstone(const struct entries *entries);

/* See overrides_count(). */
size_t entries_count(const struct entries *entries);
size_t entries_places(const struct entries *entries); /* likewise; entries_most() bounds them */
unsigned entries_most(const struct entries *entries); /* for as many keys there is room */

#endif
