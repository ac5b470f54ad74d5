/* A write of which the keeper must know, and its reply, which waits for the keeper twice:
 *
 *   SET ─▶ admitted here ─┬─▶ cache ─▶ its reply ─▶ done? ─▶ keeper ─▶ an entry everywhere ─▶ reply
 *                         └─▶ keeper, when it is at work for the key: what is on its way is stale
 *
 * Whoever has seen the reply may read the key through any worker. Until then the key is admitted in
 * the writer's worker alone, so that what is pipelined behind the write finds it; that ends with
 * the write, and if the cache has refused it, or written nothing, nothing is left of it.
 *
 * Why that makes no wrong nil. What was looked up meanwhile was passed on, not rejected. A refused
 * write leaves what filter and entries say, as if it had not been sent; an entry that was there
 * before stands. Two clients may write one key: each write under way is counted, and the entry of
 * the one that was done is no other's to take back. When the connection is lost before the reply,
 * the write may have happened: it counts as done. Of a client that has gone, too.
 */
#include "worker/command/keys/write.h"

#include "base/clock.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "worker/command/keys/write_proof.h"

#include <errno.h>

const char write_refusal[] = "NESTGUARD busy: too many keys that no row is known for were written "
                             "(max_hints), try again later";

enum { PROOFS = PROOF_SCRIPT + 1 };

/* Of writes, one for each proof; and of deletions. */
static const struct reply_slot_kind write_kinds[PROOFS], delete_kind;

/* ---- what it leads to ---- */

/* Which keys are worth a hint: those that the filter lacks, or also some that it holds. */
enum worth { LACKED, ALSO_HELD };

/* With ALSO_HELD a key that is held counts as lacked while there is room for such. */
static bool wants_hint(const struct serving *serving, struct key key, enum worth worth)
{
    bool held = guard_holds(serving->view, key) &&
                (worth == LACKED ||
                 !guard_has_room_for_held(serving->view, &serving->overrides, key.keyspace));
    return guard_wants_hint(serving->view, &serving->overrides, key, held);
}

static struct key key_of(const struct lookup *lookup)
{
    return key_make(lookup->keyspace, lookup->key);
}

static void tell_keeper(const struct lookup *lookup, bool done)
{
    struct reply_slot *slot = lookup->slot;
    struct serving *serving = slot->serving;
    struct key key = key_of(lookup);
    bool deletes = slot->kind == &delete_kind;
    struct write_request *write = xmalloc(sizeof *write + key.text.length);
    *write = (struct write_request){.message = {.kind = MESSAGE_WRITE},
                                    .slot = slot,
                                    .done = done,
                                    .wants_hint =
                                        done && !deletes && wants_hint(serving, key, ALSO_HELD),
                                    .deletes = deletes,
                                    .key = key_copy(key, write->text)};
    if (write->wants_hint)
        counter_add(&serving->keyspaces[lookup->keyspace].hints, 1);
    slot->waiting++;
    serving_ask_keeper(serving, &write->message);
}

static const char stranded[] =
    "NESTGUARD handover: what was written may not be known to the process "
    "that has taken over, write again";

/* The message of a write that was only on its way ends nothing; its second one does. */
void write_returned(struct serving *serving, const struct write_request *request)
{
    if (request->done && !request->deletes)
        overrides_end_write(&serving->overrides, request->key);
    if (request->stranded) {
        buffer_clear(&request->slot->reply); /* whatever the cache has said */
        resp_write_error(&request->slot->reply, "%s", stranded);
    }
    reply_slot_answered(request->slot);
}

static size_t places_of(const struct reply_slot *slot)
{
    size_t places = 0;
    for (size_t i = 0; i < slot->lookup_count; i++)
        places += override_places(slot->lookups[i].key.length);
    return places;
}

/* The slot waits for the cache no more; of what it has noted, the keeper hears now or never. */
static void conclude(struct reply_slot *slot, bool done)
{
    struct serving *serving = slot->serving;
    for (size_t i = 0; i < slot->lookup_count; i++) {
        if (done && !serving->ending)
            tell_keeper(&slot->lookups[i], true);
        else if (slot->kind != &delete_kind)
            overrides_end_write(&serving->overrides, key_of(&slot->lookups[i]));
    }
    if (!done && slot->replies)
        hint_share_return(&client_of(slot->replies)->hints, places_of(slot));
}

static bool is_done(const struct reply_slot *slot, struct span reply)
{
    if (slot->kind == &delete_kind)
        return reply.at[0] != '-';
    return write_is_done((enum command_proof)(slot->kind - write_kinds), reply);
}

/* The reply must not leave before the keeper has done its part: it waits in the slot. */
static void write_reply(struct reply_slot *slot, unsigned index, struct span reply)
{
    (void)index;
    reply_slot_append(slot, &slot->reply, reply);
    if (slot->lookup_count)
        conclude(slot, is_done(slot, reply));
}

static void write_failure(struct reply_slot *slot, unsigned index, const char *why)
{
    (void)index;
    resp_write_error(&slot->reply, "%s", why);
    conclude(slot, true);
}

static void write_unheard(struct reply_slot *slot, struct span reply)
{
    conclude(slot, !reply.length || is_done(slot, reply));
}

#define KIND                                                                                       \
    {                                                                                              \
        .on_cache = write_reply, .on_cache_failure = write_failure, .on_unheard = write_unheard    \
    }
static const struct reply_slot_kind write_kinds[PROOFS] = {KIND, KIND, KIND, KIND};
static const struct reply_slot_kind delete_kind = KIND;
#undef KIND

/* ---- which keys the keeper must know of ---- */

static bool must_note(const struct serving *serving, struct span text, bool deletes,
                      enum worth worth)
{
    int keyspace = guard_match(serving_config(serving), text);
    if (keyspace == NOT_GUARDED)
        return false;
    struct key key = key_make(keyspace, text);
    return watch_has(serving->watch, key) || (!deletes && wants_hint(serving, key, worth));
}

/* Of keys whose writes have begun. */
static void note_begun(struct reply_slot *slot, const struct span *keys, size_t count)
{
    struct serving *serving = slot->serving;
    reply_slot_set_lookups(slot, keys, count);
    for (size_t i = 0; i < count; i++) {
        struct lookup *lookup = &slot->lookups[i];
        lookup->keyspace = guard_match(serving_config(serving), lookup->key);
        if (watch_has(serving->watch, key_of(lookup)))
            tell_keeper(lookup, false);
    }
}

/* The text is of a guarded key. */
static struct key key_by_text(const struct serving *serving, struct span text)
{
    return key_make(guard_match(serving_config(serving), text), text);
}

/* Before the command goes to the cache. */
static void note(struct reply_slot *slot, const struct span *keys, size_t count)
{
    struct serving *serving = slot->serving;
    for (size_t i = 0; i < count && slot->kind != &delete_kind; i++)
        overrides_begin_write(&serving->overrides, key_by_text(serving, keys[i]));
    note_begun(slot, keys, count);
}

/* Takes so many places of the client's share; see hint_share.h. Those that turn out not to be
 * needed go back (conclude()). */
static bool has_room(struct client *client, size_t places)
{
    const struct serving *serving = client->serving;
    const struct config *config = serving_config(serving);
    const struct generation *generation = serving->view->generation;
    struct hint_room room = {.used = overrides_places(&serving->overrides),
                             .most = config->max_hints,
                             .now = clock_ms(),
                             .ttl_ms = config_ends_hints(config) ? config->hint_ttl_ms : 0,
                             .generation = generation ? generation->settled : 0};
    return hint_share_take(&client->hints, &room, places);
}

/* ---- which keys are noted ---- */

/* Keys that a command names, each `step` behind the one before. Those found are an array of spans.
 */
struct named {
    const struct span *keys;
    size_t count, step;
    bool deleted;
};

static const struct span *spans_in(const struct buffer *found)
{
    return (const struct span *)(const void *)buffer_span(found).at;
}

static size_t count_in(const struct buffer *found)
{
    return buffer_length(found) / sizeof(struct span);
}

static size_t places_for(const struct buffer *found)
{
    size_t places = 0;
    for (size_t i = 0; i < count_in(found); i++)
        places += override_places(spans_in(found)[i].length);
    return places;
}

static size_t find_worth(const struct serving *serving, const struct named *named, enum worth worth,
                         struct buffer *found)
{
    buffer_clear(found);
    for (size_t i = 0; i < named->count; i += named->step)
        if (must_note(serving, named->keys[i], named->deleted, worth))
            buffer_append(found, (const char *)&named->keys[i], sizeof *named->keys);
    return count_in(found);
}

/* No command is refused because of keys that the filter holds: where there is no room for all,
 * these go without. -ENOSPC: nor is there for the others. */
static int find_noted(struct client *client, const struct named *named, struct buffer *found)
{
    size_t count = find_worth(client->serving, named, ALSO_HELD, found);
    if (!count || named->deleted || has_room(client, places_for(found)))
        return 0;
    count = find_worth(client->serving, named, LACKED, found);
    return !count || has_room(client, places_for(found)) ? 0 : -ENOSPC;
}

/* The end of a large one: it cannot be refused any more. */
struct reply_slot *write_open(struct client *client)
{
    return reply_slot_open(&client->replies, &write_kinds[PROOF_NO_ERROR]);
}

void write_note(struct reply_slot *slot, struct span key)
{
    if (must_note(slot->serving, key, false, ALSO_HELD))
        note(slot, &key, 1);
}

/* ---- keys that are admitted, and not written ---- */

/* Whether nothing has said yet that the key exists; one that is named twice is new once. */
static bool is_new(const struct serving *serving, struct key key)
{
    return wants_hint(serving, key, LACKED) &&
           !overrides_find(&serving->overrides, key, clock_ms()).writes;
}

/* are_new[i]: of each, before those found count as known. */
static void begin_admission(struct serving *serving, const struct named *named,
                            const struct buffer *found, bool *are_new)
{
    size_t next = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct key key = key_by_text(serving, named->keys[i]);
        are_new[i] = is_new(serving, key);
        if (next == count_in(found) || spans_in(found)[next].at != named->keys[i].at)
            continue;
        overrides_begin_write(&serving->overrides, key);
        next++;
    }
}

struct reply_slot *write_admit(struct client *client, const struct span *keys, size_t count,
                               bool *are_new)
{
    const struct named named = {.keys = keys, .count = count, .step = 1};
    struct buffer found = {0};
    struct reply_slot *slot = NULL;
    if (find_noted(client, &named, &found) == 0) {
        begin_admission(client->serving, &named, &found, are_new);
        slot = write_open(client);
        if (count_in(&found))
            note_begun(slot, spans_in(&found), count_in(&found));
    }
    buffer_finish(&found);
    return slot;
}

void write_admitted(struct reply_slot *slot)
{
    conclude(slot, true);
    reply_slot_answered(slot);
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
    size_t end = first + number * (size_t)request->command->key_step;
    return (struct keys){first, end < request->count ? end : request->count};
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

/* A BITFIELD of GETs alone only reads. */
static bool writes_no_field(const struct request *request)
{
    if (strcmp(request->command->name, "BITFIELD") != 0)
        return false;
    for (size_t i = 2; i < request->count; i++)
        if (span_is_word(request->arguments[i], "SET") ||
            span_is_word(request->arguments[i], "INCRBY"))
            return false;
    return true;
}

static struct keys keys_of(const struct request *request)
{
    const struct command *command = request->command;
    size_t first = (size_t)command->first_key;
    if (writes_no_field(request))
        return (struct keys){0, 0};
    if (command->last_key >= 0)
        return (struct keys){first, (size_t)command->last_key + 1};
    if (command->last_key == KEYS_COUNTED)
        return counted_keys(request);
    if (command->last_key == KEYS_STORED)
        return stored_key(request);
    return (struct keys){first, request->count};
}

static const struct reply_slot_kind *kind_of(const struct request *request)
{
    if (request->command->kind == COMMAND_DELETE)
        return &delete_kind;
    return &write_kinds[write_proof(request->command, request->arguments, request->count)];
}

/* Mostly there is nothing to tell, and the command is forwarded like any other. */
int write_dispatch(struct client *client, const struct request *request)
{
    struct buffer found = {0};
    struct keys keys = keys_of(request);
    const struct named named = {.keys = request->arguments + keys.first,
                                .count = keys.end > keys.first ? keys.end - keys.first : 0,
                                .step = (size_t)request->command->key_step,
                                .deleted = request->command->kind == COMMAND_DELETE};
    int status = find_noted(client, &named, &found);
    if (!status) {
        struct reply_slot *slot = reply_slot_open(&client->replies, kind_of(request));
        if (count_in(&found))
            note(slot, spans_in(&found), count_in(&found));
        request_to_cache(request, client, slot, 0);
        reply_slot_answered(slot);
    }
    buffer_finish(&found);
    return status;
}
