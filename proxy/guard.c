/* Decisions depend on their arguments and the clock alone: whoever asks, worker or keeper, gets
 * the same answer from the same view and entries.
 */
#include "guard.h"

#include "clock.h"

/* The first that matches is the only one: config_check.c refuses templates that overlap. */
int guard_match(const struct config *config, struct span key)
{
    for (size_t i = 0; i < config->keyspace_count; i++)
        if (key_template_matches(&config->keyspaces[i].key, key))
            return (int)i;
    return NOT_GUARDED;
}

uint64_t guard_prepare(const struct view *view, int keyspace, struct span key)
{
    if (!view->generation)
        return 0;
    uint64_t hash = filter_hash(&view->generation->seed, key.at, key.length);
    filter_prefetch(view->generation->filters[keyspace], hash);
    return hash;
}

/* Mostly there are no entries at all: then neither the key is hashed nor the clock read. That a
 * batch's time may be somewhat old does no harm: an entry that ends meanwhile was in force when the
 * lookup came. */
static struct override find_for(struct permission *permission, const struct overrides *overrides,
                                struct span key)
{
    if (!overrides_count(overrides))
        return (struct override){.kind = OVERRIDE_NONE};
    return overrides_find(overrides, key, permission_time(permission));
}

/* A block holds whatever the guard knows. A tombstone and the filter reject only with permission:
 * without it the row may have come back unseen, and the lease may have run out before the next view
 * says so. A hint outranks the filter. */
struct ruling guard_decide(struct permission *permission, const struct overrides *overrides,
                           int keyspace, struct span key, uint64_t hash)
{
    const struct view *view = permission->view;
    struct override entry = find_for(permission, overrides, key);
    if (entry.blocked_until)
        return (struct ruling){DECISION_REJECT, REASON_BLOCK};
    if (view->states[keyspace] != KEYSPACE_GUARDING)
        return (struct ruling){DECISION_PASS, REASON_NO_PERMISSION};
    if (entry.kind == OVERRIDE_HINT)
        return (struct ruling){DECISION_PASS, REASON_HINT};
    bool absent = !filter_contains(view->generation->filters[keyspace], hash);
    if (!absent && entry.kind != OVERRIDE_TOMBSTONE)
        return (struct ruling){DECISION_PASS, REASON_POSSIBLE};
    if (!permission_holds(permission, keyspace))
        return (struct ruling){DECISION_PASS, REASON_NO_PERMISSION};
    enum decision decision =
        view->config->keyspaces[keyspace].enforce ? DECISION_REJECT : DECISION_SHADOW;
    return (struct ruling){decision, absent ? REASON_ABSENT : REASON_TOMBSTONE};
}

/* Where no log tells of it, a key that is written while a generation is being built must be
 * admitted though the present one holds it: the next may have taken its snapshot before the key's
 * row came. */
bool guard_wants_hint(const struct view *view, const struct overrides *overrides, int keyspace,
                      struct span key, uint64_t hash)
{
    struct override entry = {.kind = OVERRIDE_NONE};
    if (overrides_count(overrides))
        entry = overrides_find(overrides, key, clock_ms());
    bool unseen = view->building && view->config->sync != SYNC_REPLICATION;
    if (entry.kind == OVERRIDE_TOMBSTONE)
        return true;
    if (entry.kind == OVERRIDE_HINT)
        return view->config->sync != SYNC_REPLICATION &&
               (!entry.sticky || (unseen && entry.epoch < view->newest));
    return unseen || !view->generation ||
           !filter_contains(view->generation->filters[keyspace], hash);
}

const char *reason_text(enum reason reason)
{
    static const char *const texts[] = {
        [REASON_POSSIBLE] = "the filter does not rule the key out",
        [REASON_ABSENT] = "the filter rules the key out: no row had it",
        [REASON_HINT] = "admitted by a write or by the control port",
        [REASON_TOMBSTONE] = "deleted: the database confirmed that the row is gone",
        [REASON_BLOCK] = "blocked through the control port",
        [REASON_NO_PERMISSION] = "the keyspace may not reject at the moment"};
    return texts[reason];
}
