/* Each entry is sent to all workers at once, in messages of their own that share one count of those
 * that are still out. The keeper's table is changed first: what it decides itself from then on, and
 * what it tells of the key, is never behind what a worker has.
 */
#include "keeper/changes/entries.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "base/memory.h"
#include "guard/guard.h"

#include <errno.h>
#include <stdlib.h>

/* One entry on its way to all workers, and to another process: how many have not confirmed it yet,
 * and who waits for that. */
struct broadcast {
    struct entries *entries;
    unsigned outstanding;
    bool known;        /* by all that are not outstanding any more */
    entries_done done; /* when nobody is outstanding any more; may be NULL */
    void *arg;
    struct broadcast *next; /* the other process has them in this order */
    uint64_t sent;          /* to it; clock_ms() */
};

static void send_entry(const struct outlet *outlet, struct key key, struct override entry,
                       struct broadcast *broadcast)
{
    for (unsigned i = 0; i < outlet->count; i++) {
        struct override_message *message = xmalloc(sizeof *message + key.text.length);
        *message = (struct override_message){
            .message = {.kind = MESSAGE_OVERRIDE, .sender = outlet->sender},
            .broadcast = broadcast,
            .entry = entry,
            .key = key_copy(key, message->text)};
        mailbox_post(outlet->to[i], &message->message);
    }
}

bool entries_are_taken(const struct entries *entries)
{
    return !entries->ending || entries->remote.is_awaited;
}

struct override entries_find(const struct entries *entries, struct key key)
{
    return overrides_find(&entries->table, key, clock_ms());
}

static bool has_entry(const struct entries *entries, struct key key)
{
    struct override entry = entries_find(entries, key);
    return entry.kind != OVERRIDE_NONE || entry.blocked_until;
}

int entries_have_room(const struct entries *entries, struct key key)
{
    if (entries->ending)
        return -ESHUTDOWN;
    return overrides_places(&entries->table) < entries_most(entries) || has_entry(entries, key)
               ? 0
               : -ENOSPC;
}

static enum cause cause_of(struct override entry)
{
    static const enum cause causes[] = {
        [OVERRIDE_HINT] = CAUSE_HINT, [OVERRIDE_TOMBSTONE] = CAUSE_TOMBSTONE};
    if (entry.kind == OVERRIDE_NONE)
        return entry.blocked_until ? CAUSE_BLOCK : CAUSE_RELEASE;
    return causes[entry.kind];
}

/* From a worker, or from the other process: which of them is the last is no matter. */
static void take_receipt(struct broadcast *broadcast)
{
    if (--broadcast->outstanding)
        return;
    broadcast->entries->under_way--;
    if (broadcast->done)
        broadcast->done(broadcast->arg, broadcast->known);
    free(broadcast);
}

bool entries_are_everywhere(const struct entries *entries)
{
    return !entries->under_way && !entries->stranded;
}

/* ---- the other process ---- */

/* What the other has to confirm stands in a line: it confirms in this order, and says no more than
 * that. */
static void send_away(struct entries *entries, struct key key, struct override entry,
                      struct broadcast *broadcast)
{
    const struct entries_remote *remote = &entries->remote;
    if (!remote->send)
        return;
    if (remote->is_awaited) {
        broadcast->outstanding++;
        broadcast->sent = clock_ms();
        *entries->last = broadcast;
        entries->last = &broadcast->next;
    }
    remote->send(remote->arg, key, entry);
}

void entries_remote_has(struct entries *entries)
{
    struct broadcast *broadcast = entries->first;
    if (!broadcast)
        return;
    entries->first = broadcast->next;
    if (!entries->first)
        entries->last = &entries->first;
    take_receipt(broadcast);
}

void entries_remote_lost(struct entries *entries)
{
    entries->remote = (struct entries_remote){.send = NULL};
    while (entries->first)
        entries_remote_has(entries);
}

void entries_strand(struct entries *entries)
{
    entries->stranded = true;
    for (struct broadcast *broadcast = entries->first; broadcast; broadcast = broadcast->next)
        broadcast->known = false;
    entries_remote_lost(entries);
}

uint64_t entries_remote_owes(const struct entries *entries)
{
    return entries->first ? entries->first->sent : 0;
}

/* ---- setting ---- */

/* At the end no worker takes it, and the other process alone is waited for: that there is one was
 * asked before (entries_are_taken()). */
static struct broadcast *begin(struct entries *entries, struct key key, struct override entry,
                               entries_done done, void *arg)
{
    struct key_change change = change_of_key(cause_of(entry), key);
    struct broadcast *broadcast = xmalloc(sizeof *broadcast);
    *broadcast = (struct broadcast){.entries = entries,
                                    .outstanding = entries->ending ? 0 : entries->outlet->count,
                                    .known = !entries->stranded,
                                    .done = done,
                                    .arg = arg};
    entries->under_way++;
    overrides_set(&entries->table, key, entry);
    changes_tell(entries->changes, &change);
    return broadcast;
}

/* Of a key that has no row no generation knows more by and by. */
static struct override as_kept(const struct entries *entries, struct key key, struct override entry)
{
    entry.sticky &= !entries->view->config->keyspaces[key.keyspace].source;
    return entry;
}

void entries_put_here(struct entries *entries, struct key key, struct override entry,
                      entries_done done, void *arg)
{
    entry = as_kept(entries, key, entry);
    struct broadcast *broadcast = begin(entries, key, entry, done, arg);
    send_entry(entries->outlet, key, entry, broadcast);
}

void entries_put(struct entries *entries, struct key key, struct override entry, entries_done done,
                 void *arg)
{
    entry = as_kept(entries, key, entry);
    struct broadcast *broadcast = begin(entries, key, entry, done, arg);
    send_away(entries, key, entry, broadcast);
    if (!entries->ending)
        send_entry(entries->outlet, key, entry, broadcast);
}

int entries_set(struct entries *entries, struct key key, struct override entry, entries_done done,
                void *arg)
{
    int status = entries_have_room(entries, key);
    /* That the row is gone was asked by another rule than the key's now. */
    if (entry.kind == OVERRIDE_TOMBSTONE && entries->view->config->keyspaces[key.keyspace].retired)
        status = -ESTALE;
    if (!status)
        entries_put(entries, key, entry, done, arg);
    return status;
}

void entries_take_back(struct override_message *message)
{
    struct broadcast *broadcast = message->broadcast;
    free(message);
    take_receipt(broadcast);
}

/* Without a log nothing confirms a key but later snapshots: the entry holds until one was taken in
 * which everybody who may have been writing the row is over. */
struct override entries_hint(const struct entries *entries, uint64_t for_ms)
{
    const struct config *config = entries->view->config;
    uint64_t now = clock_ms();
    return (struct override){.kind = OVERRIDE_HINT,
                             .sticky = !for_ms && config->sync != SYNC_REPLICATION,
                             .since = now,
                             .until = now + (for_ms ? for_ms : config->hint_ttl_ms),
                             .epoch = entries->view->newest};
}

/* Holds until the next generation is in force, though that may be being built already: where a log
 * is followed it tells of the deletion then, and else its snapshot may still be to come, and have a
 * row that has come back meanwhile, of which nobody tells. If it was taken before the deletion, the
 * key is loaded once more, and found to be absent. */
struct override entries_tombstone(const struct entries *entries)
{
    const struct generation *in_force = entries->view->generation;
    return (struct override){.kind = OVERRIDE_TOMBSTONE,
                             .sticky = true,
                             .until = clock_ms(),
                             .epoch = in_force ? in_force->number : 0};
}

bool entries_wait_for(const struct entries *entries, struct key key, bool serving)
{
    if (!overrides_count(&entries->table)) /* mostly */
        return false;
    enum override_kind kind = entries_find(entries, key).kind;
    return kind == OVERRIDE_TOMBSTONE || (kind == OVERRIDE_HINT && serving);
}

/* Of a row that has come back some worker may still hold the tombstone when another one's client
 * has written the key: a hint has him wait for that one, too. */
static struct override end_of(const struct entries *entries, struct override entry)
{
    if (entry.kind == OVERRIDE_TOMBSTONE)
        return override_admit(entry, entries_hint(entries, OVERRIDE_NEW_MS));
    entry.kind = OVERRIDE_NONE;
    return entry;
}

/* The block that the key may have is left as it is. */
bool entries_know(struct entries *entries, struct key key, bool serving, entries_done done,
                  void *arg)
{
    struct override entry = entries_find(entries, key);
    bool ends = entries_wait_for(entries, key, serving);
    return ends && entries_set(entries, key, end_of(entries, entry), done, arg) == 0;
}

static void list_tombstone(void *arg, struct key key, struct override entry)
{
    if (entry.kind != OVERRIDE_TOMBSTONE)
        return;
    buffer_append(arg, &key.text.length, sizeof key.text.length);
    buffer_append(arg, key.text.at, key.text.length);
}

/* Listed first, since to end one changes the table. */
void entries_unbury(struct entries *entries)
{
    struct buffer list = {0};
    overrides_each(&entries->table, clock_ms(), list_tombstone, &list);
    struct span all = buffer_span(&list), text;
    for (size_t at = 0; at < all.length; at += sizeof text.length + text.length) {
        memcpy(&text.length, all.at + at, sizeof text.length);
        text.at = all.at + at + sizeof text.length;
        int keyspace = guard_match(entries->view->config, text);
        if (keyspace != NOT_GUARDED)
            entries_know(entries, key_make(keyspace, text), false, NULL, NULL);
    }
    buffer_finish(&list);
}

unsigned entries_most(const struct entries *entries)
{
    return entries->view->config->max_hints;
}

size_t entries_count(const struct entries *entries)
{
    return overrides_count(&entries->table);
}

size_t entries_places(const struct entries *entries)
{
    return overrides_places(&entries->table);
}

void entries_use_view(struct entries *entries, const struct view *view)
{
    entries->view = view;
    overrides_use_generation(&entries->table, view->generation);
}

void entries_end(struct entries *entries)
{
    entries->ending = true;
}

void entries_init(struct entries *entries, const struct outlet *outlet,
                  const struct changes *changes)
{
    *entries = (struct entries){.outlet = outlet, .changes = changes};
    entries->last = &entries->first;
    overrides_init(&entries->table);
}

void entries_finish(struct entries *entries)
{
    overrides_finish(&entries->table);
}
