/* Writes and checks that workers tell of. */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "guard/hint_share.h"
#include "http/http_target.h"
#include "redis/redis.h"

#include <errno.h>
#include <stdlib.h>

enum { RENEW_HINTS_MS = 60000 };

/* ---- writes and deletions through the guard ---- */

static void tell(struct keeper *keeper, enum cause cause, struct key key)
{
    struct key_change change = change_of_key(cause, key);
    changes_tell(&keeper->changes, &change);
}

static void write_is_known(void *arg)
{
    struct write_request *write = arg;
    mailbox_return(&write->message);
}

static void is_purged(void *arg, const struct redis_answer *answer)
{
    (void)answer;
    write_is_known(arg);
}

/* Without a log only a generation ends hints. One is begun when half of their places are taken, but
 * not one after the other. */
void keeper_renew_hints(struct keeper *keeper, uint64_t now)
{
    const struct config *config = keeper_config(keeper);
    if (config->sync != SYNC_REPLICATION && keeper->renewal.phase == RENEWAL_IDLE &&
        hint_room_is_scarce(entries_count(&keeper->entries), config->max_hints) &&
        now - keeper->renewal.polled >= RENEW_HINTS_MS && !keeper->draining)
        renewal_begin(&keeper->renewal);
}

/* What is under way for the key is stale when its write is sent, and when it is done. A hint finds
 * its place: its worker has seen to that (hint_share.h). */
void keeper_take_write(struct keeper *keeper, struct write_request *write)
{
    struct key key = write->key;
    struct override known = entries_find(&keeper->entries, key);
    tell(keeper, write->deletes ? CAUSE_DROPPED : CAUSE_WRITTEN, key);
    if (write->done && write->deletes) /* behind any fill that was sent before */
        redis_purge(keeper->redis, (struct redis_bytes){key.text.at, key.text.length}, is_purged,
                    write);
    else if (write->done && !keeper->draining &&
             (write->wants_hint || known.kind == OVERRIDE_TOMBSTONE))
        entries_put(&keeper->entries, key, override_admit(known, entries_hint(&keeper->entries, 0)),
                    write_is_known, write);
    else
        mailbox_return(&write->message);
}

/* ---- shadow mode ---- */

/* A key may be any bytes, and there may be many: one a second, escaped as in the control port's
 * paths. */
static void log_false_reject(struct keeper *keeper, struct key key)
{
    if (!log_pace_may(&keeper->false_rejects, clock_ms(), NULL))
        return;
    char *text = http_target_escape(key.text);
    log_error("keyspace %s: %.200s has a row and would have been rejected",
              keeper_config(keeper)->keyspaces[key.keyspace].name, text);
    free(text);
}

static void on_fn_check(void *arg, struct key key, enum fn_check_outcome outcome, struct span other)
{
    struct keeper *keeper = arg;
    struct load_counters *counters = &keeper->counters[key.keyspace];
    if (outcome == FN_CHECK_UNDECIDED || outcome == FN_CHECK_UNSEEN)
        return;
    counter_add(&counters->shadow_checked, 1);
    if (outcome == FN_CHECK_OTHER_SPELLING)
        spellings_add(keeper->loading.spellings, key, other);
    if (outcome != FN_CHECK_CONFIRMED)
        return;
    counter_add(&counters->false_rejects, 1);
    log_false_reject(keeper, key);
}

void keeper_take_fn_check(struct keeper *keeper, struct fn_check_message *fn_check)
{
    if (keeper->publishing.generation && !keeper->draining)
        fn_checks_add(keeper->fn_checks, keeper->publishing.generation, fn_check->key, on_fn_check,
                      keeper);
    mailbox_return(&fn_check->message);
}
