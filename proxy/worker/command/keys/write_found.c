/* Nothing here is changed but the client's share: what is found is looked at again when the cache
 * has done the write. */
#include "worker/command/keys/write_found.h"

#include "base/clock.h"
#include "worker/client/queued_writes.h"
#include "worker/command/keys/vanishing.h"

#include <errno.h>

enum write_needs write_needs(const struct serving *serving, struct key key, enum worth worth)
{
    return guard_write_needs(serving->view, &serving->overrides, key, worth);
}

static bool is_hinted(const struct serving *serving, struct key key)
{
    return overrides_find(&serving->overrides, key, clock_ms()).kind == OVERRIDE_HINT;
}

/* made->granted: whether it is to have places. While a write is under way its key has an entry,
 * though none may be needed afterwards. What it waits for may outlast the hint that is there. */
static bool must_note(const struct serving *serving, const struct named *named, struct span text,
                      enum worth worth, struct made_key *made)
{
    int keyspace = guard_match(serving_config(serving), text);
    *made = (struct made_key){.text = text};
    if (keyspace == NOT_GUARDED)
        return false;
    struct key key = key_make(keyspace, text);
    bool waits = named->waits && worth == ALSO_HELD;
    bool is_meant = waits || watch_has(serving->watch, key);
    if (named->deleted)
        return is_meant;
    enum write_needs needs = write_needs(serving, key, worth);
    if (needs == WRITE_NEEDS_NOTHING && !is_meant)
        return false;
    made->granted = waits || needs == WRITE_NEEDS_HINT || !is_hinted(serving, key);
    return true;
}

static bool has_room(struct client *client, size_t places)
{
    struct hint_room room = hosts_hint_room(client->serving);
    return hint_share_take(&client->hints, &client->host->hints, &room, places);
}

struct named named_by(const struct request *request)
{
    const struct command *command = request->command;
    bool vanish = vanishing_has(request);
    struct write_keys keys = vanish ? vanishing_keys(request) : write_keys_of(request);
    return (struct named){.keys = request->arguments + keys.first,
                          .count = keys.end > keys.first ? keys.end - keys.first : 0,
                          .step = vanish ? 1 : (size_t)command->key_step,
                          .deleted = vanish || command->kind == COMMAND_DELETE,
                          .waits = command->effect == EFFECT_BLOCK};
}

size_t found_places(const struct buffer *found)
{
    size_t places = 0;
    for (size_t i = 0; i < found_count(found); i++)
        if (found_keys(found)[i].granted)
            places += override_places(found_keys(found)[i].text.length);
    return places;
}

void write_find_some(const struct serving *serving, const struct named *named, size_t first,
                     size_t end, enum worth worth, struct buffer *found)
{
    struct made_key one;
    for (size_t i = first; i < end; i += named->step)
        if (must_note(serving, named, named->keys[i], worth, &one))
            buffer_append(found, (const char *)&one, sizeof one);
}

bool write_is_granted(struct client *client, const struct named *named, const struct buffer *found)
{
    size_t places = named->deleted ? 0 : found_places(found);
    return !places || has_room(client, places);
}

/* Nothing is taken: what is new among them is asked for afterwards. */
static bool would_exceed(const struct client *client, size_t places)
{
    struct hint_share own = client->hints, host = client->host->hints;
    struct hint_room room = hosts_hint_room(client->serving);
    return places && !hint_share_take(&own, &host, &room, places);
}

bool write_exceeds_user(const struct client *client, const struct named *named)
{
    if (!client->replies.no_fallback || named->deleted)
        return false;
    size_t places = 0;
    for (size_t i = 0; i < named->count; i += named->step)
        if (guard_match(serving_config(client->serving), named->keys[i]) != NOT_GUARDED)
            places += override_places(named->keys[i].length);
    return would_exceed(client, places);
}

void write_grant(struct client *client, size_t places)
{
    struct hint_room room = hosts_hint_room(client->serving);
    if (!places)
        return;
    hint_share_overtake(&client->hints, &room, places);
    hint_share_overtake(&client->host->hints, &room, places);
}

static const struct named queued = {.deleted = false};

/* Those that the filter holds go without, as with any write; a user of the cache's own is not told
 * which they are. */
static bool wants_place(const struct client *client, const struct queued_write *write)
{
    struct made_key made;
    if (write->granted)
        return false;
    return client->replies.no_fallback ||
           (must_note(client->serving, &queued, write->key.text, LACKED, &made) && made.granted);
}

/* A transaction may have been open for longer than the hints that its keys had. */
static bool exceeds_by_now(struct client *client)
{
    struct span rest = buffer_span(&client->pinned.written);
    struct queued_write write;
    size_t places = 0;
    while (queued_writes_next(&rest, &write))
        if (wants_place(client, &write))
            places += override_places(write.key.text.length);
    return would_exceed(client, places);
}

static bool begin_queued(struct client *client, struct queued_write *write)
{
    struct serving *serving = client->serving;
    struct made_key made;
    if (!must_note(serving, &queued, write->key.text, ALSO_HELD, &made))
        return false;
    write->key = key_make(guard_match(serving_config(serving), write->key.text), write->key.text);
    overrides_begin_write(&serving->overrides, write->key);
    if (made.granted && !write->granted)
        write_grant(client, override_places(write->key.text.length));
    write->granted |= made.granted;
    write->begun = true;
    return true;
}

bool write_find_queued(struct client *client)
{
    if (exceeds_by_now(client))
        return false;
    struct buffer all = queued_writes_take(client);
    struct span rest = buffer_span(&all);
    struct queued_write write;
    while (queued_writes_next(&rest, &write))
        if (write.begun || begin_queued(client, &write))
            queued_writes_put(client, &write);
        else if (write.granted)
            hints_give_back(client, override_places(write.key.text.length));
    buffer_finish(&all);
    return true;
}

int write_find_noted(struct client *client, const struct named *named, struct buffer *found)
{
    write_find_some(client->serving, named, 0, named->count, ALSO_HELD, found);
    if (write_is_granted(client, named, found))
        return 0;
    buffer_clear(found);
    write_find_some(client->serving, named, 0, named->count, LACKED, found);
    return write_is_granted(client, named, found) ? 0 : -ENOSPC;
}
