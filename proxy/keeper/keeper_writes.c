/* Writes and checks that workers tell of. */
#include "keeper/keeper_internal.h"

#include "base/memory.h"
#include "guard/hint_share.h"
#include "redis/redis.h"

#include <stdlib.h>

enum { RENEW_HINTS_MS = 60000 };

/* ---- writes and deletions through the guard ---- */

static void tell(struct keeper *keeper, enum cause cause, struct key key)
{
    struct key_change change = change_of_key(cause, key);
    changes_tell(&keeper->changes, &change);
}

/* A successor that does not know of the write would deny the key, so the writer is not told that it
 * is done. */
static void write_is_known(void *arg, bool known)
{
    struct write_request *write = arg;
    write->stranded = !known;
    mailbox_return(&write->message);
}

struct deletion {
    struct keeper *keeper;
    struct write_request *write;
};

/* Whether it is known that the key is gone or not, the client has done what he wanted; and the
 * cache is asked again. */
static void is_purged(void *arg, const struct redis_answer *answer)
{
    struct deletion deletion = *(struct deletion *)arg;
    free(arg);
    if (answer->outcome != REDIS_DONE)
        purging_owe(&deletion.keeper->purging, deletion.write->key);
    mailbox_return(&deletion.write->message);
}

/* Without a log only a generation ends hints. One is begun when half of their places are taken, but
 * not one after the other: one client alone may take as many, again and again. */
void keeper_renew_hints(struct keeper *keeper, uint64_t now)
{
    const struct config *config = keeper_config(keeper);
    if (config->sync != SYNC_REPLICATION && renewal_takes_wishes(&keeper->renewal) &&
        hint_room_is_scarce(entries_places(&keeper->entries), config->max_hints) &&
        now - keeper->renewal.polled >= RENEW_HINTS_MS &&
        renewal_has_rested(&keeper->renewal, now) && !keeper->draining)
        renewal_wish(&keeper->renewal);
}

/* Whichever of two caches they were sent to. */
static void delete_behind_fills(struct keeper *keeper, struct write_request *write)
{
    struct redis_bytes text = {write->key.text.at, write->key.text.length};
    struct deletion *deletion = xmalloc(sizeof *deletion);
    *deletion = (struct deletion){keeper, write};
    purging_delete_other(&keeper->purging, write->key);
    redis_purge(keeper->cache.here->redis, text, is_purged, deletion);
}

/* The worker's copy admits the key until this comes back; the keeper's end is a matter of what
 * other processes know. */
static void admit(struct keeper *keeper, struct write_request *write, struct override known)
{
    struct entries *entries = &keeper->entries;
    struct override hint = override_admit(known, entries_hint(entries, 0));
    if (entries_are_taken(entries))
        entries_put(entries, write->key, hint, write_is_known, write);
    else
        write_is_known(write, !entries->stranded);
}

/* What is under way for the key is stale, also where the write has made nothing: whoever changes a
 * value if it is there has changed the row. A hint finds its place: its worker has seen to that
 * (hint_share.h). Another's that is on its way is given once more: behind it, that is everywhere
 * when this one is. */
void keeper_take_write(struct keeper *keeper, struct write_request *write)
{
    struct override known = entries_find(&keeper->entries, write->key);
    tell(keeper, write->deletes ? CAUSE_DROPPED : CAUSE_WRITTEN, write->key);
    if (write->done && write->deletes)
        delete_behind_fills(keeper, write);
    else if (write->done && (write->wants_hint || known.kind == OVERRIDE_TOMBSTONE ||
                             (write->shares_hint && !entries_are_everywhere(&keeper->entries))))
        admit(keeper, write, known);
    else
        mailbox_return(&write->message);
}

/* ---- all keys at once ---- */

static void may_clear(void *arg)
{
    struct clearing_request *request = arg;
    mailbox_return(&request->message);
}

static void begin_clearing(struct keeper *keeper, struct clearing_request *request)
{
    bool begun;
    request->clearing = loads_begin_clearing(keeper->loading.loads, may_clear, request, &begun);
    if (begun)
        may_clear(request);
}

/* What is being loaded was read before the command, and is not filled; what was sent to the cache
 * before got there before the command did: so no key has to be deleted behind it, and none that was
 * written since is. Refused, it has changed nothing, and takes nobody's fills. */
void keeper_take_clearing(struct keeper *keeper, struct clearing_request *request)
{
    struct key_change change = change_of_keyspace(CAUSE_CLEARED, 0);
    if (request->step == CLEARING_ASKED) {
        begin_clearing(keeper, request);
        return;
    }
    if (request->step == CLEARING_DONE)
        changes_tell(&keeper->changes, &change);
    loads_end_clearing(keeper->loading.loads, request->clearing);
    mailbox_return(&request->message);
}

/* It goes back at once: the worker waits for no outcome. */
void keeper_take_fn_check(struct keeper *keeper, struct fn_check_message *fn_check)
{
    const struct keyspace *keyspace = &keeper_config(keeper)->keyspaces[fn_check->key.keyspace];
    if (keeper->publishing.generation && !keeper->draining && keyspace_has_rows(keyspace))
        checking_sample(&keeper->checking, keeper->publishing.generation, fn_check->key);
    mailbox_return(&fn_check->message);
}
