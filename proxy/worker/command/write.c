/* A write or deletion goes two ways when the keeper must know of it, and its reply waits for both:
 *
 *   SET, DEL ─▶ slot ─┬─▶ cache ────────────────────────────────────────────────────────────▶ reply
 *                     └─▶ keeper ─▶ an entry in every worker; what was on its way is stale ─▶ back
 *
 * Whoever has seen the reply may read the key through any worker.
 */
#include "worker/command/write.h"

#include "base/clock.h"
#include "base/memory.h"
#include "guard/guard.h"

/* The reply must not leave before the keeper has done its part: it waits in the slot. */
static void write_reply(struct slot *slot, unsigned index, struct span reply)
{
    (void)index;
    buffer_append(&slot->reply, reply.at, reply.length);
}

static void write_failure(struct slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(&slot->reply, "%s", why);
}

static const struct slot_kind write_kind = {.on_cache = write_reply,
                                            .on_cache_failure = write_failure};

/* This worker admits the key at once, so that the client's next command already finds it admitted;
 * the keeper tells all workers until when the entry holds. When it has no place for it that word
 * never comes, and the entry must end by itself. */
static void admit_here(struct serving *serving, struct key key)
{
    uint64_t now = clock_ms();
    struct override known = overrides_find(&serving->overrides, key, now);
    struct override hint = {.kind = OVERRIDE_HINT,
                            .until = now + serving_config(serving)->hint_ttl_ms};
    overrides_set(&serving->overrides, key, override_admit(known, hint));
}

static void tell_keeper(struct slot *slot, struct key key, bool wants_hint, bool deletes)
{
    struct write_request *write = xmalloc(sizeof *write + key.text.length);
    *write = (struct write_request){.message = {.kind = MESSAGE_WRITE},
                                    .slot = slot,
                                    .key = key_copy(key, write->text),
                                    .wants_hint = wants_hint,
                                    .deletes = deletes};
    slot->waiting++;
    serving_ask_keeper(slot->serving, &write->message);
}

static void note_key(struct slot *slot, struct span text, bool deletes)
{
    struct serving *serving = slot->serving;
    int keyspace = guard_match(serving_config(serving), text);
    if (keyspace == NOT_GUARDED)
        return;
    struct key key = key_make(keyspace, text);
    bool held = !deletes && guard_holds(serving->view, key);
    bool wants_hint = !deletes && guard_wants_hint(serving->view, &serving->overrides, key, held);
    if (wants_hint) {
        counter_add(&serving->keyspaces[keyspace].hints, 1);
        admit_here(serving, key);
    }
    if (wants_hint || watch_has(serving->watch, key))
        tell_keeper(slot, key, wants_hint, deletes);
}

struct slot *write_open(struct client *client)
{
    return slot_open(&client->replies, &write_kind);
}

void write_note(struct slot *slot, struct span key)
{
    note_key(slot, key, false);
}

struct keys {
    size_t first, end;
};

/* As many as the argument before them says; more than there are is the cache's to refuse. */
static struct keys counted_keys(const struct request *request)
{
    size_t first = (size_t)request->command->first_key, number = 0;
    struct span text = request->arguments[first - 1];
    for (size_t i = 0; i < text.length && number < request->count; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return (struct keys){0, 0};
        number = number * 10 + (size_t)(text.at[i] - '0');
    }
    size_t end = first + number < request->count ? first + number : request->count;
    return (struct keys){first, end};
}

static bool is_store(struct span word)
{
    return span_is_word(word, "STORE") || span_is_word(word, "STOREDIST");
}

/* The last one counts. */
static struct keys stored_key(const struct request *request)
{
    for (size_t i = request->count - 1; i > (size_t)request->command->first_key; i--)
        if (is_store(request->arguments[i - 1]))
            return (struct keys){i, i + 1};
    return (struct keys){0, 0};
}

static struct keys keys_of(const struct request *request)
{
    const struct command *command = request->command;
    size_t first = (size_t)command->first_key;
    if (command->last_key >= 0)
        return (struct keys){first, (size_t)command->last_key + 1};
    if (command->last_key == KEYS_COUNTED)
        return counted_keys(request);
    if (command->last_key == KEYS_STORED)
        return stored_key(request);
    return (struct keys){first, request->count};
}

/* Mostly there is nothing to tell, and the command is forwarded like any other. */
void write_dispatch(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    struct slot *slot = slot_open(&client->replies, &write_kind);
    struct keys keys = keys_of(request);
    for (size_t i = keys.first; i < keys.end; i += (size_t)command->key_step)
        note_key(slot, request->arguments[i], command->kind == COMMAND_DELETE);
    request_to_cache(request, client, slot, 0);
    slot_answered(slot);
}
