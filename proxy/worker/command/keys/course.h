/* What becomes of one key's lookup, whichever command asks:
 *
 *   course_rejects() ─yes─▶ absent
 *      └─no─▶ the cache ─answers─▶ course_after() ─hit─▶ COURSE_ANSWERED
 *                 │                   └─nil─▶ decided again ─absent─▶ COURSE_REJECTED
 *                 │                              ├─ on_miss: load ─▶ COURSE_LOADING
 *                 │                              └─ on_miss: pass ─▶ COURSE_ANSWERED
 *                 └─fails─▶ course_without_cache(): loaded, or an error
 *
 * Each of these steps is counted here, once for each key.
 */
#ifndef NESTGUARD_COURSE_H
#define NESTGUARD_COURSE_H

#include "guard/guard.h"
#include "resp/reply.h"
#include "worker/command/keys/answer.h"
#include "worker/reply/measuring.h"
#include "worker/reply/reply_slot.h"
#include "worker/request/shadow_sample.h"

/* What a key's lookup has come to once the cache has said its word. */
enum course {
    COURSE_ANSWERED, /* that word is the answer */
    COURSE_LOADING,
    COURSE_REJECTED
};

/* Takes the ruling on a key and counts it; true: reject. `held`: its filter may hold it. (Here for
 * the compiler: it is what the rejects, most of all requests, spend their time on.) */
static inline bool course_rejects(struct serving *serving, int keyspace, struct span key, bool held)
{
    struct ruling ruling =
        guard_decide(&serving->permission, &serving->overrides, keyspace, key, held);
    struct keyspace_counters *counters = &serving->keyspaces[keyspace];
    counter_add(&counters->lookups, 1);
    if (ruling.decision == DECISION_REJECT)
        counter_add(&counters->rejected, 1);
    else if (ruling.decision == DECISION_SHADOW) {
        counter_add(&counters->would_reject, 1);
        serving->measures.shadowed = true;
        shadow_sample(serving, keyspace, key);
    }
    return ruling.decision == DECISION_REJECT;
}

/* The same for a user of the cache's own, who may not be allowed to read the key and must not learn
 * whether it exists: the cache is asked in any case, and only for what it does not have is the
 * ruling told (course_after()). What was blocked by order is absent to everybody. */
__attribute__((noinline)) bool course_rejects_user(struct serving *serving, int keyspace,
                                                   struct span key, bool held);

/* The cache has answered the lookup of a guarded key, with something (`hit`) or with nil. After
 * COURSE_LOADING its slot waits for the keeper's answer, too. */
enum course course_after(struct lookup *lookup, bool hit);

/* The same where `reply`, the cache's word, or that there is no row, is then written to `out`. */
void course_take_nil(struct lookup *lookup, struct span reply, struct buffer *out);
static inline void course_take(struct lookup *lookup, struct span reply, struct buffer *out)
{
    if (reply_is_nil(reply)) {
        course_take_nil(lookup, reply, out);
        return;
    }
    counter_add(&lookup->slot->serving->keyspaces[lookup->keyspace].cache_hits, 1);
    measuring_cached(lookup, TIME_CACHE_HIT);
    measuring_end(lookup, LOOKUP_HIT);
    reply_slot_append(lookup->slot, out, reply);
}

/* The cache could not answer, `why` (an error's text without its dash): the row itself does. Where
 * the application loads by itself, or may read only what the cache lets it, it learns of the
 * failure: `why` is written to `out`. */
void course_without_cache(struct lookup *lookup, struct buffer *out, const char *why);

#endif
