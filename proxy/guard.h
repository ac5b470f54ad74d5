/* The guard's decisions: which keyspace a key belongs to, and whether a lookup of it may go on.
 * Workers decide by it, and the keeper explains with the same functions. No I/O.
 */
#ifndef NESTGUARD_GUARD_H
#define NESTGUARD_GUARD_H

#include "overrides.h"
#include "view.h"

enum { NOT_GUARDED = -1 };

enum decision {
    DECISION_PASS,
    DECISION_REJECT,
    DECISION_SHADOW /* passes, but enforce: true would reject */
};

/* Why a decision was taken, for counters and GET /v1/keys/{key}. */
enum reason {
    REASON_POSSIBLE,     /* the filter does not rule the key out */
    REASON_ABSENT,       /* the filter rules it out */
    REASON_HINT,         /* admitted ahead of the log */
    REASON_TOMBSTONE,    /* deleted, and the database said so */
    REASON_BLOCK,        /* refused by the admin's order */
    REASON_NO_PERMISSION /* the keyspace may not reject now */
};

struct ruling {
    enum decision decision;
    enum reason reason;
};

/* Index of the keyspace whose template the key matches, or NOT_GUARDED. */
int guard_match(const struct config *config, struct span key);

/* The hash to probe with; 0 without a generation, where nothing probes. Asks for the filter's cache
 * lines. */
uint64_t guard_prepare(const struct view *view, int keyspace, struct span key);

/* The ruling on a lookup of a guarded key, by the permission's view. */
struct ruling guard_decide(struct permission *permission, const struct overrides *overrides,
                           int keyspace, struct span key, uint64_t hash);

/* Whether a write of this key is news: no verdict "possible" and no hint in force covers it. */
bool guard_wants_hint(const struct view *view, const struct overrides *overrides, int keyspace,
                      struct span key, uint64_t hash);

const char *reason_text(enum reason reason);

#endif
