/* Exact entries on their way to those who decide by them:
 *
 *   control port, a worker's hint ─▶ keeper's table ─▶ every worker's copy ─▶ receipts ─▶ done()
 *
 * Whoever gave an entry is answered when the last worker has it: from then on no lookup anywhere is
 * decided without it.
 */
#include "keeper/keeper_internal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "guard/hint_share.h"
#include "http/http_target.h"
#include "redis/redis.h"

#include <errno.h>
#include <stdlib.h>

enum { COMPLAINT_MS = 1000, RENEW_HINTS_MS = 60000 };

/* One entry on its way to all workers: how many have not confirmed it yet, and who waits for that.
 */
struct broadcast {
    unsigned outstanding;
    void (*done)(void *arg);
    void *arg;
};

static void send_override(struct keeper *keeper, struct key key, struct override entry,
                          struct broadcast *broadcast)
{
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        struct override_message *message = xmalloc(sizeof *message + key.text.length);
        *message = (struct override_message){
            .message = {.kind = MESSAGE_OVERRIDE, .sender = &keeper->mailbox},
            .broadcast = broadcast,
            .entry = entry,
            .key = key_copy(key, message->text)};
        mailbox_post(&keeper->workers[i]->serving.mailbox, &message->message);
    }
}

struct override keeper_entry(const struct keeper *keeper, struct key key)
{
    return overrides_find(&keeper->overrides, key, clock_ms());
}

static bool has_entry(const struct keeper *keeper, struct key key)
{
    struct override entry = keeper_entry(keeper, key);
    return entry.kind != OVERRIDE_NONE || entry.blocked_until;
}

int keeper_has_room(const struct keeper *keeper, struct key key)
{
    if (keeper->draining)
        return -ESHUTDOWN;
    return overrides_count(&keeper->overrides) < keeper_config(keeper)->max_hints ||
                   has_entry(keeper, key)
               ? 0
               : -ENOSPC;
}

static void tell(struct keeper *keeper, enum cause cause, struct key key)
{
    struct key_change change = change_of_key(cause, key);
    changes_tell(&keeper->changes, &change);
}

static enum cause cause_of(struct override entry)
{
    static const enum cause causes[] = {
        [OVERRIDE_HINT] = CAUSE_HINT, [OVERRIDE_TOMBSTONE] = CAUSE_TOMBSTONE};
    if (entry.kind == OVERRIDE_NONE)
        return entry.blocked_until ? CAUSE_BLOCK : CAUSE_RELEASE;
    return causes[entry.kind];
}

static void set_entry(struct keeper *keeper, struct key key, struct override entry,
                      void (*done)(void *arg), void *arg)
{
    struct broadcast *broadcast = xmalloc(sizeof *broadcast);
    *broadcast = (struct broadcast){keeper->worker_count, done, arg};
    overrides_set(&keeper->overrides, key, entry);
    tell(keeper, cause_of(entry), key);
    send_override(keeper, key, entry, broadcast);
}

int keeper_override(struct keeper *keeper, struct key key, struct override entry,
                    void (*done)(void *arg), void *arg)
{
    int status = keeper_has_room(keeper, key);
    if (status)
        return status;
    set_entry(keeper, key, entry, done, arg);
    return 0;
}

void keeper_take_override_back(struct override_message *message)
{
    struct broadcast *broadcast = message->broadcast;
    free(message);
    if (--broadcast->outstanding)
        return;
    if (broadcast->done)
        broadcast->done(broadcast->arg);
    free(broadcast);
}

/* Without a log nothing confirms a key but later snapshots: the entry holds until one was taken in
 * which everybody who may have been writing the row is over. */
struct override keeper_hint(const struct keeper *keeper, uint64_t for_ms)
{
    const struct config *config = keeper_config(keeper);
    return (struct override){.kind = OVERRIDE_HINT,
                             .sticky = !for_ms && config->sync != SYNC_REPLICATION,
                             .until = clock_ms() + (for_ms ? for_ms : config->hint_ttl_ms),
                             .epoch = keeper->renewal.newest};
}

/* Holds until a generation is in force that was built without the row. Where a log is followed the
 * next one will do, though it may be built already: its log tells of the deletion then. A later one
 * would be too late: once this generation's log is lost, nobody tells that the row has come back
 * before the next one's snapshot. */
struct override keeper_tombstone(const struct keeper *keeper)
{
    bool follows = keeper_config(keeper)->sync == SYNC_REPLICATION;
    uint64_t in_force = keeper->publishing.generation ? keeper->publishing.generation->number : 0;
    return (struct override){.kind = OVERRIDE_TOMBSTONE,
                             .sticky = true,
                             .until = clock_ms(),
                             .epoch = follows ? in_force : keeper->renewal.newest};
}

/* ---- writes and deletions through the guard ---- */

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
        hint_room_is_scarce(overrides_count(&keeper->overrides), config->max_hints) &&
        now - keeper->renewal.polled >= RENEW_HINTS_MS && !keeper->draining)
        renewal_begin(&keeper->renewal);
}

/* What is under way for the key is stale when its write is sent, and when it is done. A hint finds
 * its place: its worker has seen to that (hint_share.h). */
void keeper_take_write(struct keeper *keeper, struct write_request *write)
{
    struct key key = write->key;
    struct override known = overrides_find(&keeper->overrides, key, clock_ms());
    tell(keeper, write->deletes ? CAUSE_DROPPED : CAUSE_WRITTEN, key);
    if (write->done && write->deletes) /* behind any fill that was sent before */
        redis_purge(keeper->redis, (struct redis_bytes){key.text.at, key.text.length}, is_purged,
                    write);
    else if (write->done && !keeper->draining &&
             (write->wants_hint || known.kind == OVERRIDE_TOMBSTONE))
        set_entry(keeper, key, override_admit(known, keeper_hint(keeper, 0)), write_is_known,
                  write);
    else
        mailbox_return(&write->message);
}

/* ---- shadow mode ---- */

/* A key may be any bytes, and there may be many: one a second, escaped as in the control port's
 * paths. */
static void log_false_reject(struct keeper *keeper, struct key key)
{
    uint64_t now = clock_ms();
    if (keeper->complained && now - keeper->complained < COMPLAINT_MS)
        return;
    keeper->complained = now;
    char *text = http_target_escape(key.text);
    log_error("keyspace %s: %.200s has a row and would have been rejected",
              keeper_config(keeper)->keyspaces[key.keyspace].name, text);
    free(text);
}

static void on_doubt(void *arg, struct key key, enum doubt_outcome outcome, struct span other)
{
    struct keeper *keeper = arg;
    struct load_counters *counters = &keeper->counters[key.keyspace];
    if (outcome == DOUBT_UNDECIDED || outcome == DOUBT_UNSEEN)
        return;
    counter_add(&counters->shadow_checked, 1);
    if (outcome == DOUBT_OTHER_SPELLING)
        spellings_add(keeper->spellings, key, other);
    if (outcome != DOUBT_CONFIRMED)
        return;
    counter_add(&counters->false_rejects, 1);
    log_false_reject(keeper, key);
}

void keeper_take_doubt(struct keeper *keeper, struct doubt_message *doubt)
{
    if (keeper->publishing.generation && !keeper->draining)
        doubts_add(keeper->doubts, keeper->publishing.generation, doubt->key, on_doubt, keeper);
    mailbox_return(&doubt->message);
}
