/* Exact entries on their way to those who decide by them:
 *
 *   control port, a worker's hint ─▶ keeper's table ─▶ every worker's copy ─▶ receipts ─▶ done()
 *
 * Whoever gave an entry is answered when the last worker has it: from then on no lookup anywhere is
 * decided without it.
 */
#include "keeper.h"

#include "clock.h"
#include "log.h"
#include "memory.h"

#include <errno.h>
#include <stdlib.h>

/* One entry on its way to all workers: how many have not confirmed it yet, and who waits for that.
 */
struct broadcast {
    unsigned outstanding;
    void (*done)(void *arg);
    void *arg;
};

static void send_override(struct keeper *keeper, struct span key, struct override entry,
                          struct broadcast *broadcast)
{
    for (unsigned i = 0; i < keeper->worker_count; i++) {
        struct override_message *message = xmalloc(sizeof *message + key.length);
        *message = (struct override_message){
            .message = {.kind = MESSAGE_OVERRIDE, .sender = &keeper->mailbox},
            .broadcast = broadcast,
            .entry = entry,
            .key_length = key.length};
        memcpy(message->key, key.at, key.length);
        mailbox_post(&keeper->workers[i]->serving.mailbox, &message->message);
    }
}

int keeper_override(struct keeper *keeper, struct span key, struct override entry,
                    void (*done)(void *arg), void *arg)
{
    if (keeper->draining)
        return -ESHUTDOWN;
    if (overrides_count(&keeper->overrides) >= keeper_config(keeper)->max_hints &&
        overrides_find(&keeper->overrides, key, clock_ms()).kind == OVERRIDE_NONE)
        return -ENOSPC;
    struct broadcast *broadcast = xmalloc(sizeof *broadcast);
    *broadcast = (struct broadcast){keeper->worker_count, done, arg};
    overrides_set(&keeper->overrides, key, entry);
    loads_changed(keeper->loads, key);
    send_override(keeper, key, entry, broadcast);
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

/* Without a log nothing confirms a key but the next snapshot: the entry holds until one was taken
 * after it. */
struct override keeper_hint(const struct keeper *keeper, uint64_t for_ms)
{
    const struct config *config = keeper_config(keeper);
    return (struct override){.kind = OVERRIDE_HINT,
                             .sticky = !for_ms && config->sync != SYNC_REPLICATION,
                             .until = clock_ms() + (for_ms ? for_ms : config->hint_ttl_ms),
                             .epoch = keeper->renewal.newest};
}

/* Holds until a generation is in force whose building began after this: that one was built without
 * the row. */
struct override keeper_tombstone(const struct keeper *keeper)
{
    return (struct override){.kind = OVERRIDE_TOMBSTONE,
                             .sticky = true,
                             .until = clock_ms(),
                             .epoch = keeper->renewal.newest};
}

static void hint_is_known(void *arg)
{
    struct hint_request *hint = arg;
    mailbox_return(&hint->message);
}

/* A hint that finds no place must not be forgotten: nothing is rejected until a new generation
 * knows the key; one that is being built may have taken its snapshot before. The view that says so
 * reaches each worker before this message does. */
void keeper_take_hint(struct keeper *keeper, struct hint_request *hint)
{
    struct span key = {hint->key, hint->key_length};
    enum override_kind kind = overrides_find(&keeper->overrides, key, clock_ms()).kind;
    int status = -EALREADY;
    if (kind != OVERRIDE_BLOCK)
        status = keeper_override(keeper, key, keeper_hint(keeper, 0), hint_is_known, hint);
    if (status == -ENOSPC)
        keeper->hints_lost = keeper->renewal.newest;
    if (status == -ENOSPC && !keeper->hints_overflowed) {
        log_warning("more than %u keys were admitted since the last generation: nothing is "
                    "rejected until the next (max_hints)",
                    keeper_config(keeper)->max_hints);
        keeper->hints_overflowed = true;
        keeper_publish(keeper, NULL);
        renewal_begin(&keeper->renewal);
    }
    if (status)
        mailbox_return(&hint->message);
}
