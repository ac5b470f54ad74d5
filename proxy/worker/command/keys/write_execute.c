/* EXEC: its slot has the keys that the transaction writes or deletes, as that of a single write
 * has.
 */
#include "worker/client/queued_writes.h"
#include "worker/command/keys/clearing.h"
#include "worker/command/keys/write.h"
#include "worker/command/keys/write_internal.h"
#include "worker/command/keys/write_proof.h"
#include "worker/upstream/pool.h"

#include <string.h>

/* Which keys the keeper is at work for is asked now: whoever reads a row from here on reads what
 * was changed before EXEC. */
static void find_deleted(const struct serving *serving, struct span keys, struct buffer *found)
{
    const char *end = keys.at + keys.length;
    struct span key;
    for (const char *at = keys.at; at < end; at = key.at + key.length) {
        memcpy(&key.length, at, sizeof key.length);
        key.at = at + sizeof key.length;
        const struct named named = {.keys = &key, .count = 1, .step = 1, .deleted = true};
        write_find_some(serving, &named, 0, 1, LACKED, found);
    }
}

/* Those that are written have begun. */
static void note_executed(struct client *client, struct reply_slot *slot,
                          const struct buffer *deleted)
{
    struct span written = buffer_span(&client->pinned.written), rest = written;
    size_t count = found_count(deleted), bytes = written.length;
    struct queued_write write;
    while (queued_writes_next(&rest, &write))
        count++;
    for (size_t i = 0; i < found_count(deleted); i++)
        bytes += found_keys(deleted)[i].text.length;
    if (!count)
        return;
    if (!reply_slot_try_lookup_room(slot, count, bytes))
        out_of_memory();
    for (size_t i = 0; i < found_count(deleted); i++)
        write_note_key(slot, write_key_by_text(slot->serving, found_keys(deleted)[i].text), true);
    while (queued_writes_next(&written, &write)) {
        struct lookup *lookup = write_note_key(slot, write.key, false);
        lookup->granted = write.granted;
        lookup->command = write.command;
        lookup->proof = write.proof;
    }
    struct buffer all = queued_writes_take(client);
    buffer_finish(&all);
}

static void execute(struct client *client, const struct request *request,
                    const struct buffer *deleted)
{
    struct reply_slot *slot = reply_slot_open(&client->replies, write_kind_of_exec(client));
    slot->joined = queued_writes_elements(client);
    note_executed(client, slot, deleted);
    request_to_cache(request, client, slot, 0);
    reply_slot_answered(slot);
    if (found_count(deleted))
        client_settle(client);
}

/* Keys stand in the order of commands. A reply that is not of as many elements as commands were
 * counted says nothing of a single one. */
void write_reject_each(struct reply_slot *slot, struct span reply)
{
    const char *at, *end = reply.at + reply.length;
    if (resp_array_open(reply, &at) != (int64_t)slot->joined)
        return;
    struct span element = {0};
    size_t next = 0;
    for (size_t i = 0; i < slot->lookup_count; i++) {
        struct lookup *lookup = &slot->lookups[i];
        if (lookup->deleted)
            continue;
        for (; next <= lookup->command && next < slot->joined; next++)
            element = resp_array_next(&at, end);
        lookup->rejected = element.length && write_outcome(lookup->proof, element) != WRITE_DONE;
    }
}

/* What is held back itself cannot tell what has become of its writes: they count as done. */
static void execute_behind_fills(struct client *client, const struct request *request)
{
    struct reply_slot *slot = clearing_dispatch(client, request);
    struct buffer all = queued_writes_take(client);
    struct span rest = buffer_span(&all);
    struct queued_write write;
    size_t places = 0; /* that were not needed */
    while (queued_writes_next(&rest, &write)) {
        const struct lookup lookup = {
            .slot = slot, .key = write.key.text, .keyspace = write.key.keyspace};
        bool takes_place = write_tell_keeper(&lookup, true);
        if (takes_place && !write.granted)
            write_grant(client, override_places(write.key.text.length));
        else if (!takes_place && write.granted)
            places += override_places(write.key.text.length);
    }
    if (places)
        hints_give_back(client, places); /* its slot is no write's, that they could be settled by */
    buffer_finish(&all);
}

/* A deletion behind fills would take what the transaction itself has made since, and whether it has
 * the replies in EXEC's do not tell. So such a one waits for the fills instead. */
void write_execute(struct client *client, const struct request *request)
{
    const struct pinned *pinned = &client->pinned;
    struct buffer deleted = {0};
    find_deleted(client->serving, buffer_span(&pinned->deleted), &deleted);
    if (pinned->clears || (found_count(&deleted) && pinned->remakes))
        execute_behind_fills(client, request);
    else
        execute(client, request, &deleted);
    buffer_finish(&deleted);
}
