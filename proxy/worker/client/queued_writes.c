#include "worker/client/queued_writes.h"

#include "guard/guard.h"

#include <string.h>

/* A transaction may stay open for ever, and what is noted of it has places of the overrides for as
 * long: a few hundred keys, so that own_connections bounds them all. */
enum { WRITTEN_BYTES = 8 * 1024 };

struct written {
    size_t length;
    int keyspace; /* its number when the write began, which is to end by the same */
};

static void note(struct client *client, struct key key)
{
    struct buffer *written = &client->pinned.written;
    const struct written head = {key.text.length, key.keyspace};
    overrides_begin_write(&client->serving->overrides, key);
    buffer_append(written, (const char *)&head, sizeof head);
    buffer_append(written, key.text.at, key.text.length);
}

bool queued_writes_note(struct client *client, const struct span *keys, size_t count)
{
    const struct config *config = serving_config(client->serving);
    size_t bytes = buffer_length(&client->pinned.written);
    for (size_t i = 0; i < count; i++)
        bytes += sizeof(struct written) + keys[i].length;
    if (bytes > WRITTEN_BYTES)
        return false;
    for (size_t i = 0; i < count; i++) {
        int keyspace = guard_match(config, keys[i]);
        if (keyspace != NOT_GUARDED)
            note(client, key_make(keyspace, keys[i]));
    }
    return true;
}

bool queued_writes_next(struct span *rest, struct key *key)
{
    struct written head;
    if (!rest->length)
        return false;
    memcpy(&head, rest->at, sizeof head);
    *key = key_make(head.keyspace, (struct span){rest->at + sizeof head, head.length});
    rest->at += sizeof head + head.length;
    rest->length -= sizeof head + head.length;
    return true;
}

void hints_give_back(struct client *client, size_t places)
{
    hint_share_return(&client->hints, places);
    hint_share_return(&client->host->hints, places);
}

void queued_writes_forget(struct client *client)
{
    struct span rest = buffer_span(&client->pinned.written);
    struct key key;
    size_t places = 0;
    while (queued_writes_next(&rest, &key)) {
        overrides_end_write(&client->serving->overrides, key);
        places += override_places(key.text.length);
    }
    if (places) /* else it may have no host yet */
        hints_give_back(client, places);
    buffer_finish(&client->pinned.written);
}

void queued_forget(struct client *client)
{
    struct pinned *pinned = &client->pinned;
    pinned->queued = 0;
    pinned->tells = pinned->clears = pinned->remakes = false;
    buffer_finish(&pinned->deleted);
    queued_writes_forget(client);
}
