/* Decisions depend on their arguments and the clock alone: whoever asks, worker or keeper, gets
 * the same answer from the same view and entries.
 */
#include "guard/guard.h"

#include "base/clock.h"

bool guard_holds(const struct view *view, struct key key)
{
    const struct asked_filter *asked = &view->asked[key.keyspace];
    return asked->filter &&
           filter_contains(asked->filter, filter_hash(asked->seed, key.text.at, key.text.length));
}

void key_asks_end(struct key_asks *asks)
{
    for (size_t i = 0; i < asks->count; i++) {
        struct key_ask *ask = &asks->at[i];
        ask->held = ask->filter && filter_ask_end(ask->filter, &ask->begun);
    }
}

/* That a batch's time may be somewhat old does no harm: an entry that ends meanwhile was in force
 * when the lookup came. */
struct override guard_entry(struct permission *permission, const struct overrides *overrides,
                            struct key key)
{
    return overrides_find(overrides, key, permission_time(permission));
}

/* ---- writes ---- */

static bool has_log(const struct view *view, int keyspace)
{
    return view->config->sync == SYNC_REPLICATION && !view->config->keyspaces[keyspace].source;
}

static bool is_departing(const struct view *view, struct key key)
{
    const struct generation *generation = view->generation;
    return generation && departing_any(&generation->departing) &&
           departing_has(&generation->departing, key.keyspace,
                         filter_hash(&generation->seed, key.text.at, key.text.length));
}

/* The log tells of all that is deleted: but for a moment, which departing.h is about, a key that is
 * held has a row. What does not guard has lost its log, and the next generation knows of deletions
 * that this one was not told of. */
static bool is_vouched_for_by_a_log(const struct view *view, struct key key)
{
    return has_log(view, key.keyspace) && view->states[key.keyspace] == KEYSPACE_GUARDING &&
           !is_departing(view, key);
}

/* Else the filter may hold a key by chance, or for a row that is gone, and the next one may be
 * begun before the row of this write is committed: then it would deny the key. But most that are
 * held have a row that stays, and who fills the cache by himself writes all of them. So they may
 * take a quarter of the places: for them no write is refused, and no filter is built. A source's
 * next file may have been made before the write, whatever log there is for the rows of others. */
static bool is_remembered_though_held(const struct view *view, const struct overrides *overrides,
                                      struct key key)
{
    return overrides_places(overrides) < view->config->max_hints / 4 &&
           !is_vouched_for_by_a_log(view, key);
}

/* With a log a row that the write was for has mostly come when half of the hint's time is over, and
 * what is written again and again is told of twice in that time at most. Without one time alone
 * ends no hint. */
static bool lasts(const struct view *view, int keyspace, struct override hint, bool renews,
                  uint64_t now)
{
    if (has_log(view, keyspace))
        return !renews || hint.until >= now + view->config->hint_ttl_ms / 2;
    return hint.sticky && hint.epoch >= view->newest;
}

/* It comes to each worker by a message, and to a successor's by its keeper: a write that the hint
 * of another one covers must not be done before that one's is.
 *
 *   worker 1                       keeper                worker 2
 *      SET, done ──────────────────▶  hint ───╮
 *      ◀─────────────────────────────────┤     │
 *      another's SET, done: OK?               │             GET: rejected
 *                                             ╰───────────▶
 */
static bool is_new(struct override hint, uint64_t now)
{
    return now - hint.since < OVERRIDE_NEW_MS;
}

/* Where no log tells of it, a key that is written while a generation is being built must be
 * admitted though the present one holds it: the next may have taken its snapshot before the key's
 * row came. */
enum write_needs guard_write_needs(const struct view *view, const struct overrides *overrides,
                                   struct key key, enum worth worth)
{
    bool also_held = worth == ALSO_HELD;
    bool remembered = also_held && is_remembered_though_held(view, overrides, key);
    bool held = !remembered && guard_holds(view, key); /* in this order: see departing.h */
    bool unseen = view->building && !has_log(view, key.keyspace);
    uint64_t now = overrides_count(overrides) ? clock_ms() : 0;
    struct override entry = {.kind = OVERRIDE_NONE};
    if (now)
        entry = overrides_find(overrides, key, now);
    if (entry.kind == OVERRIDE_NONE)
        return held && !unseen ? WRITE_NEEDS_NOTHING : WRITE_NEEDS_HINT;
    if (entry.kind == OVERRIDE_TOMBSTONE ||
        !lasts(view, key.keyspace, entry, also_held && !held, now))
        return WRITE_NEEDS_HINT;
    return is_new(entry, now) ? WRITE_NEEDS_WORD : WRITE_NEEDS_NOTHING;
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
