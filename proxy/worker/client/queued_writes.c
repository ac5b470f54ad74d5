#include "worker/client/queued_writes.h"

#include "guard/guard.h"

#include <string.h>

/* A transaction may stay open for ever, and what is noted of it has places of the overrides for as
 * long: a few hundred keys, so that own_connections bounds them all. */
enum {
    WRITTEN_BYTES = 8 * 1024,
    REMEMBERED_BYTES = 1024 * 1024, /* with those: they take the client's memory alone */
    DELETED_BYTES = 64 * 1024
};

struct written {
    size_t length, command;
    enum command_proof proof;
    int keyspace; /* its number when the write began, which is to end by the same */
    bool begun, granted;
};

void queued_writes_put(struct client *client, const struct queued_write *write)
{
    struct buffer *written = &client->pinned.written;
    size_t before = buffer_length(written);
    struct written head = {0}; /* no byte of it is left open */
    head.length = write->key.text.length;
    head.command = write->command;
    head.proof = write->proof;
    head.keyspace = write->key.keyspace;
    head.begun = write->begun;
    head.granted = write->granted;
    buffer_append(written, (const char *)&head, sizeof head);
    buffer_append(written, write->key.text.at, write->key.text.length);
    if (write->begun)
        client->pinned.begun += buffer_length(written) - before;
}

struct buffer queued_writes_take(struct client *client)
{
    struct buffer written = client->pinned.written;
    client->pinned.written = (struct buffer){0};
    client->pinned.begun = 0;
    return written;
}

static struct queued_write last_one(const struct client *client, enum command_proof proof)
{
    return (struct queued_write){.command = client->pinned.queued - 1, .proof = proof};
}

bool queued_writes_remember(struct client *client, enum command_proof proof, struct span key,
                            bool is_granted)
{
    struct pinned *pinned = &client->pinned;
    size_t room = sizeof(struct written) + key.length;
    int keyspace = guard_match(serving_config(client->serving), key);
    if (keyspace == NOT_GUARDED)
        return true;
    if (pinned->forgets || buffer_length(&pinned->written) + room > REMEMBERED_BYTES) {
        pinned->forgets = true;
        return false;
    }
    struct queued_write write = last_one(client, proof);
    write.key = key_make(keyspace, key);
    write.granted = is_granted;
    queued_writes_put(client, &write);
    return true;
}

size_t queued_writes_elements(const struct client *client)
{
    return client->pinned.forgets ? 0 : client->pinned.queued;
}

bool queued_writes_note(struct client *client, enum command_proof proof,
                        const struct made_key *keys, size_t count)
{
    struct queued_write write = last_one(client, proof);
    write.begun = true;
    const struct config *config = serving_config(client->serving);
    size_t bytes = client->pinned.begun;
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(struct written) + keys[i].text.length;
    if (bytes > WRITTEN_BYTES)
        return false;
    for (size_t i = 0; i < count; i++) {
        int keyspace = guard_match(config, keys[i].text);
        if (keyspace == NOT_GUARDED)
            continue;
        write.key = key_make(keyspace, keys[i].text);
        write.granted = keys[i].granted;
        overrides_begin_write(&client->serving->overrides, write.key);
        queued_writes_put(client, &write);
    }
    return true;
}

bool queued_writes_next(struct span *rest, struct queued_write *write)
{
    struct written head;
    if (!rest->length)
        return false;
    memcpy(&head, rest->at, sizeof head);
    write->key = key_make(head.keyspace, (struct span){rest->at + sizeof head, head.length});
    write->command = head.command;
    write->proof = head.proof;
    write->begun = head.begun;
    write->granted = head.granted;
    rest->at += sizeof head + head.length;
    rest->length -= sizeof head + head.length;
    return true;
}

void queued_writes_delete(struct client *client, struct span key)
{
    struct pinned *pinned = &client->pinned;
    size_t room = sizeof key.length + key.length;
    if (guard_match(serving_config(client->serving), key) == NOT_GUARDED || pinned->clears)
        return;
    pinned->clears = buffer_length(&pinned->deleted) + room > DELETED_BYTES;
    if (pinned->clears)
        return;
    buffer_append(&pinned->deleted, (const char *)&key.length, sizeof key.length);
    buffer_append(&pinned->deleted, key.at, key.length);
}

void queued_writes_remake(struct client *client, struct span key)
{
    if (buffer_length(&client->pinned.deleted) &&
        guard_match(serving_config(client->serving), key) != NOT_GUARDED)
        client->pinned.remakes = true;
}

void hints_give_back(struct client *client, size_t places)
{
    hint_share_return(&client->hints, places);
    hint_share_return(&client->host->hints, places);
}

void queued_writes_forget(struct client *client)
{
    struct buffer written = queued_writes_take(client);
    struct span rest = buffer_span(&written);
    struct queued_write write;
    size_t places = 0;
    while (queued_writes_next(&rest, &write)) {
        if (write.begun)
            overrides_end_write(&client->serving->overrides, write.key);
        if (write.granted)
            places += override_places(write.key.text.length);
    }
    if (places) /* else it may have no host yet */
        hints_give_back(client, places);
    buffer_finish(&written);
}

void queued_forget(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned->queued = 0;
    pinned->tells = pinned->clears = pinned->remakes = pinned->forgets = false;
    buffer_finish(&pinned->deleted);
    queued_writes_forget(client);
}
