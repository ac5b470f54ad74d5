/* The guard's decisions: which keyspace a key belongs to, and whether a lookup of it may go on.
 * Workers decide by it, and the keeper explains with the same functions. No I/O.
 */
#ifndef NESTGUARD_GUARD_H
#define NESTGUARD_GUARD_H

#include "guard/overrides.h"
#include "guard/view.h"

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

/* Index of the keyspace whose template the key matches, or NOT_GUARDED. The first that matches is
 * the only one: config_check.c refuses templates that overlap. Each lookup asks, whoever else does.
 */
__attribute__((always_inline)) static inline int guard_match(const struct config *config,
                                                             struct span key)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (key_template_matches(&config->keyspaces[i].key, key))
            return (int)i;
    return NOT_GUARDED;
}

/* Whether the keyspace's filter may hold the key; false where it has none. */
bool guard_holds(const struct view *view, struct key key);

/* Many keys to ask the filters for, so that the memory of these, which is far larger than the
 * processor's caches, is waited for once and not key by key. */
enum { KEY_ASKS_MAX = 64 };

struct key_ask {
    const struct filter *filter; /* NULL: there is none */
    struct filter_ask begun;
    bool held; /* the answer, as guard_holds() */
};

struct key_asks {
    size_t count;
    struct key_ask at[KEY_ASKS_MAX];
};

/* Begins with one more, of KEY_ASKS_MAX at most. The key need not live longer, the view must. */
static inline void key_asks_add(struct key_asks *asks, const struct view *view, int keyspace,
                                struct span key)
{
    struct key_ask *ask = &asks->at[asks->count++];
    const struct asked_filter *asked = &view->asked[keyspace];
    ask->filter = asked->filter;
    if (ask->filter)
        filter_ask_begin(ask->filter, filter_hash(asked->seed, key.at, key.length), &ask->begun);
}

/* All are answered, as of now. */
void key_asks_end(struct key_asks *asks);

/* The override of a key, if any. */
struct override guard_entry(struct permission *permission, const struct overrides *overrides,
                            struct key key);

/* The ruling on a lookup of a guarded key, by the permission's view. `held` is guard_holds(), asked
 * after the permission began.
 *
 * A block holds whatever the guard knows. A tombstone and the filter reject only with permission:
 * without it the row may have come back unseen, and the lease may have run out before the next view
 * says so. A hint outranks the filter; so does a write that is under way, and a tombstone, too.
 *
 * Mostly there are no entries at all: then neither the key is hashed nor the clock read. */
static inline struct ruling guard_decide(struct permission *permission,
                                         const struct overrides *overrides, int keyspace,
                                         struct span key, bool held)
{
    const struct view *view = permission->view;
    struct override entry = {.kind = OVERRIDE_NONE};
    if (overrides_count(overrides))
        entry = guard_entry(permission, overrides, key_make(keyspace, key));
    if (entry.blocked_until)
        return (struct ruling){DECISION_REJECT, REASON_BLOCK};
    if (view->states[keyspace] != KEYSPACE_GUARDING)
        return (struct ruling){DECISION_PASS, REASON_NO_PERMISSION};
    if (entry.kind == OVERRIDE_HINT || entry.writes)
        return (struct ruling){DECISION_PASS, REASON_HINT};
    if (held && entry.kind != OVERRIDE_TOMBSTONE)
        return (struct ruling){DECISION_PASS, REASON_POSSIBLE};
    if (!permission_holds(permission, keyspace))
        return (struct ruling){DECISION_PASS, REASON_NO_PERMISSION};
    enum decision decision =
        view->config->keyspaces[keyspace].enforce ? DECISION_REJECT : DECISION_SHADOW;
    return (struct ruling){decision, held ? REASON_TOMBSTONE : REASON_ABSENT};
}

/* What must be known of a write before its client is told that it is done. */
enum write_needs {
    WRITE_NEEDS_NOTHING, /* the filter, or a hint that all have, admits the key */
    WRITE_NEEDS_WORD, /* a hint does that this worker may be the first to have: that all have it */
    WRITE_NEEDS_HINT
};

/* Which keys are worth a hint: those that the filter lacks; or also some that it holds, while there
 * is room for such, and those that have a hint which is over soon. */
enum worth { LACKED, ALSO_HELD };

enum write_needs guard_write_needs(const struct view *view, const struct overrides *overrides,
                                   struct key key, enum worth worth);

/* A part of a sentence, for people: static. */
const char *reason_text(enum reason reason);

#endif
