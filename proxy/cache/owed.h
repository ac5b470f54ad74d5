/* What the cache is still to be told to delete: keys, each once and oldest first, in a lane for
 * each keyspace; or all of a keyspace, when there are more keys than are remembered one by one.
 *
 *   owed_add() ─▶ lane ─▶ owed_take() ─▶ on its way ─ refused, or unknown ─▶ owed_give_back()
 *                  └─ too many, of all lanes ─▶ the fullest lane is owed whole
 *
 * While a keyspace is owed whole and the cache is down, nothing is remembered of its keys: the
 * sweep that is to come will find them. While it is up (`up`) keys are remembered all the same, for
 * the cache may refuse to be swept, and only the newest is left to the sweep at each overflow.
 *
 * Only what is remembered: who sends it, and when, is the purger's. One thread's.
 */
#ifndef NESTGUARD_OWED_H
#define NESTGUARD_OWED_H

#include "base/keymap.h"
#include "config/config.h"
#include "guard/key.h"

/* On the heap; its text is `bytes`, and has no closing zero. */
struct owed_key {
    struct keymap_node node;
    int keyspace;
    char bytes[];
};

struct owed_lane {
    struct keymap keys; /* of struct owed_key */
    bool whole;         /* everything is owed, to a sweep that begins later than now */
};

struct owed {
    const struct config *config; /* keyspaces and their names */
    struct owed_lane *lanes;     /* by the keyspaces' numbers */
    size_t max;                  /* keys remembered one by one, of all lanes */
    size_t count;                /* keys in all lanes */
};

void owed_init(struct owed *owed, const struct config *config, size_t max);
void owed_use_config(struct owed *owed, const struct config *config); /* no fewer keyspaces */
void owed_finish(struct owed *owed);                                  /* frees the keys, too */

/* Remembers a copy of the key; may go past the limit. False: it was owed before. */
bool owed_add(struct owed *owed, struct key key, bool up);

/* Brings it back to the limit; the log is told of a keyspace that is owed whole for that. */
void owed_keep_limit(struct owed *owed, bool up);

/* The lane's oldest key, the caller's from now on: free() or owed_give_back(). NULL: none. */
struct owed_key *owed_take(struct owed *owed, size_t keyspace);

/* It was not deleted; freed if it is owed again by now. May go past the limit. */
void owed_give_back(struct owed *owed, struct owed_key *key, bool up);

/* All of all keyspaces: for this reason the server may have forgotten what was deleted; the log is
 * told unless all was owed before. */
void owed_all(struct owed *owed, const char *why);
bool owed_any_whole(const struct owed *owed);

/* Nothing more will be deleted: the log is told what was owed, `swept` (or NULL) and so many keys
 * on their way too, and may be stale. */
void owed_tell_lost(const struct owed *owed, const struct owed_lane *swept, size_t sent);

#endif
