/* Who asks is not told apart here, but for users of the cache's own, who may not be allowed to
 * read.
 */
#include "worker/command/keys/course.h"

#include "worker/command/keys/answer.h"
#include "worker/request/row_loads.h"

bool course_rejects_user(struct serving *serving, int keyspace, struct span key, bool held)
{
    struct ruling ruling =
        guard_decide(&serving->permission, &serving->overrides, keyspace, key, held);
    bool rejected = ruling.decision == DECISION_REJECT && ruling.reason == REASON_BLOCK;
    counter_add(&serving->keyspaces[keyspace].lookups, 1);
    counter_add(&serving->keyspaces[keyspace].rejected, rejected);
    return rejected;
}

/* A key that was passed on for a write that was under way is decided upon once more when the cache
 * does not have it: the write may have been refused since. The ruling is as good as that on a
 * lookup that is sent now. */
__attribute__((noinline)) static bool is_rejected_now(const struct lookup *lookup)
{
    const struct serving *serving = lookup->slot->serving;
    struct permission permission = permission_begin(serving->view);
    bool held = guard_holds(serving->view, key_make(lookup->keyspace, lookup->key));
    return guard_decide(&permission, &serving->overrides, lookup->keyspace, lookup->key, held)
               .decision == DECISION_REJECT;
}

enum course course_after(struct lookup *lookup, bool hit)
{
    struct serving *serving = lookup->slot->serving;
    struct keyspace_counters *counters = &serving->keyspaces[lookup->keyspace];
    counter_add(hit ? &counters->cache_hits : &counters->cache_misses, 1);
    measuring_cached(lookup, hit ? TIME_CACHE_HIT : TIME_CACHE_MISS);
    if (hit) {
        measuring_end(lookup, LOOKUP_HIT);
        return COURSE_ANSWERED;
    }
    if (is_rejected_now(lookup)) {
        counter_add(&counters->rejected, 1);
        serving->measures.rejected++; /* by itself: it is none of a turn's */
        measuring_end(lookup, LOOKUP_REJECTED);
        return COURSE_REJECTED;
    }
    if (serving_keyspace(serving, lookup->keyspace)->on_miss != MISS_LOAD) {
        measuring_end(lookup, LOOKUP_MISS);
        return COURSE_ANSWERED;
    }
    row_load(lookup);
    return COURSE_LOADING;
}

void course_take_nil(struct lookup *lookup, struct span reply, struct buffer *out)
{
    enum course course = course_after(lookup, false);
    if (course == COURSE_ANSWERED)
        reply_slot_append(lookup->slot, out, reply);
    else if (course == COURSE_REJECTED)
        answer_write_absent(out, serving_keyspace(lookup->slot->serving, lookup->keyspace),
                            answer_nil(lookup->slot), true);
}

void course_without_cache(struct lookup *lookup, struct buffer *out, const char *why)
{
    struct serving *serving = lookup->slot->serving;
    counter_add(&serving->keyspaces[lookup->keyspace].cache_failures, 1);
    measuring_cached(lookup, TIME_CACHE_ERROR);
    const struct replies *replies = lookup->slot->replies;
    bool falls_back = !(replies && replies->no_fallback);
    if (falls_back && serving_keyspace(serving, lookup->keyspace)->on_miss == MISS_LOAD) {
        row_load(lookup);
    } else {
        measuring_end(lookup, LOOKUP_ERROR);
        resp_write_error(out, "%s", why);
    }
}
