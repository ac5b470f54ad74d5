/* A write goes two ways, and its reply waits for both:
 *
 *   SET ─▶ slot ─┬─▶ cache ─────────────────────────────────────▶ reply
 *                └─▶ keeper ─▶ an entry in every worker ─▶ back
 *
 * Whoever has seen the reply may read the key through any worker.
 */
#include "hint.h"

#include "clock.h"
#include "guard.h"
#include "memory.h"

/* The reply must not leave before every worker knows the hint: it waits in the slot. */
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
static void give_hint(struct slot *slot, int keyspace, struct span key)
{
    struct serving *serving = slot->serving;
    overrides_set(&serving->overrides, key,
                  (struct override){.kind = OVERRIDE_HINT,
                                    .until = clock_ms() + serving_config(serving)->hint_ttl_ms});
    struct hint_request *hint = xmalloc(sizeof *hint + key.length);
    *hint = (struct hint_request){.message = {.kind = MESSAGE_HINT},
                                  .slot = slot,
                                  .keyspace = keyspace,
                                  .key_length = key.length};
    memcpy(hint->key, key.at, key.length);
    slot->waiting++;
    serving_ask_keeper(serving, &hint->message);
    counter_add(&serving->keyspaces[keyspace].hints, 1);
}

/* A hint for each key that the command makes and no filter or entry knows; mostly there is none,
 * and the write is forwarded like any other command. */
void hint_dispatch(struct client *client, const struct request *request)
{
    const struct command *command = request->command;
    struct serving *serving = client->serving;
    struct slot *slot = slot_open(&client->replies, &write_kind);
    size_t end = command->last_key < 0 ? request->count : (size_t)command->last_key + 1;
    for (size_t i = (size_t)command->first_key; i < end; i += (size_t)command->key_step) {
        struct span key = request->arguments[i];
        int keyspace = guard_match(serving_config(serving), key);
        if (keyspace == NOT_GUARDED)
            continue;
        uint64_t hash = guard_prepare(serving->view, keyspace, key);
        if (guard_wants_hint(serving->view, &serving->overrides, keyspace, key, hash))
            give_hint(slot, keyspace, key);
    }
    request_to_cache(request, client, slot, 0);
    slot_answered(slot);
}
