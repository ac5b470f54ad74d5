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
#include "base/container_of.h"
#include "base/memory.h"
#include "guard/guard.h"
#include "worker/command/keys/write_found.h"
#include "worker/command/keys/write_keys.h"
#include "worker/command/keys/write_proof.h"
#include "worker/command/keys/write_reads.h"
#include "worker/reply/piecemeal.h"
#include "worker/upstream/pool.h"

#include <stdlib.h>

const char write_refusal[] = "NESTGUARD busy: too many keys that no row is known for were written "
                             "(max_hints), try again later";

/* READS: what a doubted server is not asked. */
enum { PROOFS = PROOF_SCRIPT + 1, DELETES = 1, READS = 2 };

/* Of the keys of a command. */
struct range {
    size_t first, end;
};

static struct range next_piece(size_t first, size_t count, size_t step)
{
    size_t most = WRITES_AT_ONCE * step;
    return (struct range){first, count - first < most ? count : first + most};
}

/* Of writes and of deletions, one for each proof. */
static const struct reply_slot_kind kinds[2 * READS][PROOFS];

static bool is_deletion(const struct reply_slot *slot)
{
    return (slot->kind - kinds[0]) / PROOFS & DELETES;
}

/* ---- what it leads to ---- */

static struct key key_of(const struct lookup *lookup)
{
    return key_make(lookup->keyspace, lookup->key);
}

static void tell_keeper(const struct lookup *lookup, bool done)
{
    struct reply_slot *slot = lookup->slot;
    struct serving *serving = slot->serving;
    struct key key = key_of(lookup);
    bool deletes = is_deletion(slot);
    struct write_request *write = xmalloc(sizeof *write + key.text.length);
    *write = (struct write_request){.message = {.kind = MESSAGE_WRITE},
                                    .slot = slot,
                                    .done = done,
                                    .wants_hint = done && !deletes &&
                                                  write_wants_hint(serving, key, ALSO_HELD),
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

/* The slot waits for the cache no more; of what it has noted, the keeper hears now or never. What a
 * refused write has taken of its client's share goes back. */
static void conclude_some(struct reply_slot *slot, struct range range, bool done)
{
    struct serving *serving = slot->serving;
    size_t places = 0;
    for (size_t i = range.first; i < range.end; i++) {
        if (done && !serving->ending) {
            tell_keeper(&slot->lookups[i], true);
        } else if (!is_deletion(slot)) {
            overrides_end_write(&serving->overrides, key_of(&slot->lookups[i]));
            places += override_places(slot->lookups[i].key.length);
        }
    }
    if (!done && slot->replies)
        hint_share_return(&client_of(slot->replies)->hints, places);
}

struct conclusion {
    struct piecemeal piecemeal;
    size_t first; /* of the next piece */
    bool done;
};

static bool conclude_piece(struct piecemeal *piecemeal)
{
    struct conclusion *conclusion = container_of(piecemeal, struct conclusion, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    struct range range = next_piece(conclusion->first, slot->lookup_count, 1);
    conclude_some(slot, range, conclusion->done);
    turn_worked(&slot->serving->turn, range.end - range.first);
    conclusion->first = range.end;
    return range.end < slot->lookup_count;
}

/* At the worker's end there are no turns any more. */
static void conclude(struct reply_slot *slot, bool done)
{
    if (slot->lookup_count <= WRITES_AT_ONCE || slot->serving->ending) {
        conclude_some(slot, (struct range){0, slot->lookup_count}, done);
        return;
    }
    struct conclusion *conclusion = xmalloc(sizeof *conclusion);
    *conclusion =
        (struct conclusion){.piecemeal = {.slot = slot, .go_on = conclude_piece}, .done = done};
    slot->waiting++;
    piecemeal_begin(&conclusion->piecemeal, 0);
}

/* A write that is queued may well come to be done. A deletion is none before EXEC: the keeper
 * deletes once more, and that would stand if the transaction did not. */
static bool is_done(const struct reply_slot *slot, struct span reply)
{
    if (is_deletion(slot) && span_is(reply, "+QUEUED\r\n"))
        return false;
    return write_is_done((enum command_proof)((slot->kind - kinds[0]) % PROOFS), reply);
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

#define KIND(reads)                                                                                \
    {                                                                                              \
        .on_cache = write_reply, .on_cache_failure = write_failure, .on_unheard = write_unheard,   \
        .reads_row = (reads)                                                                       \
    }
#define KINDS(reads) KIND(reads), KIND(reads), KIND(reads), KIND(reads)
static const struct reply_slot_kind kinds[2 * READS][PROOFS] = {
    {KINDS(false)}, {KINDS(false)}, {KINDS(true)}, {KINDS(true)}};

/* ---- which keys the keeper must know of ---- */

static bool try_room(struct reply_slot *slot, const struct buffer *found)
{
    size_t bytes = 0;
    for (size_t i = 0; i < found_count(found); i++)
        bytes += found_spans(found)[i].length;
    return reply_slot_try_lookup_room(slot, found_count(found), bytes);
}

static void make_room(struct reply_slot *slot, const struct buffer *found)
{
    if (!try_room(slot, found))
        out_of_memory();
}

/* Of a key whose write has begun; the slot has room for it. */
static void note_begun(struct reply_slot *slot, struct key key)
{
    struct lookup *lookup = &slot->lookups[slot->lookup_count];
    reply_slot_add_lookups(slot, &key.text, 1);
    lookup->keyspace = key.keyspace;
    if (watch_has(slot->serving->watch, key))
        tell_keeper(lookup, false);
}

/* Before the command goes to the cache. A key that was found may be of no keyspace any more. */
static void note(struct reply_slot *slot, const struct span *keys, size_t count)
{
    struct serving *serving = slot->serving;
    for (size_t i = 0; i < count; i++) {
        int keyspace = guard_match(serving_config(serving), keys[i]);
        if (keyspace == NOT_GUARDED)
            continue;
        struct key key = key_make(keyspace, keys[i]);
        if (!is_deletion(slot))
            overrides_begin_write(&serving->overrides, key);
        note_begun(slot, key);
    }
}

static void note_found(struct reply_slot *slot, const struct buffer *found)
{
    if (!found_count(found))
        return;
    make_room(slot, found);
    note(slot, found_spans(found), found_count(found));
}

/* The end of a large one: it cannot be refused any more. */
struct reply_slot *write_open(struct client *client)
{
    return reply_slot_open(&client->replies, &kinds[0][PROOF_NO_ERROR]);
}

void write_note(struct reply_slot *slot, struct span key)
{
    const struct named named = {.keys = &key, .count = 1, .step = 1};
    struct buffer found = {0};
    write_find_some(slot->serving, &named, 0, 1, ALSO_HELD, &found);
    note_found(slot, &found);
    buffer_finish(&found);
}

/* ---- keys that are admitted, and not written ---- */

/* Whether nothing has said yet that the key exists; one that is named twice is new once. */
static bool is_new(const struct serving *serving, struct key key)
{
    return write_wants_hint(serving, key, LACKED) &&
           !overrides_find(&serving->overrides, key, clock_ms()).writes;
}

/* The text is of a guarded key. */
static struct key key_by_text(const struct serving *serving, struct span text)
{
    return key_make(guard_match(serving_config(serving), text), text);
}

/* are_new[i]: of each, before those found count as known. */
static void begin_admission(struct serving *serving, const struct named *named,
                            const struct buffer *found, bool *are_new)
{
    size_t next = 0;
    for (size_t i = 0; i < named->count; i++) {
        struct key key = key_by_text(serving, named->keys[i]);
        are_new[i] = is_new(serving, key);
        if (next == found_count(found) || found_spans(found)[next].at != named->keys[i].at)
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
    if (write_find_noted(client, &named, &found) == 0) {
        begin_admission(client->serving, &named, &found, are_new);
        slot = write_open(client);
        if (found_count(&found))
            make_room(slot, &found);
        for (size_t i = 0; i < found_count(&found); i++)
            note_begun(slot, key_by_text(client->serving, found_spans(&found)[i]));
    }
    buffer_finish(&found);
    return slot;
}

void write_admitted(struct reply_slot *slot)
{
    conclude(slot, true);
    reply_slot_answered(slot);
}

static const struct reply_slot_kind *kind_of(const struct client *client,
                                             const struct request *request)
{
    bool deletes = request->command->kind == COMMAND_DELETE;
    bool reads = write_reads_in_doubt(client, request);
    return &kinds[DELETES * deletes + READS * reads]
                 [write_proof(request->command, request->arguments, request->count)];
}

static struct named named_by(const struct request *request)
{
    struct write_keys keys = write_keys_of(request);
    return (struct named){.keys = request->arguments + keys.first,
                          .count = keys.end > keys.first ? keys.end - keys.first : 0,
                          .step = (size_t)request->command->key_step,
                          .deleted = request->command->kind == COMMAND_DELETE};
}

/* ---- in pieces ---- */

/* First all named keys are looked at, then those found are noted, then the command is sent. */
struct large_write {
    struct piecemeal piecemeal;
    struct request request; /* of copies, which stand behind */
    struct named named;
    struct buffer found;
    enum worth worth;
    bool is_granted; /* all are found, and there is room for them */
    size_t next;     /* of the named keys, then of those found */
    size_t meant;    /* of serving->hints_meant */
    struct span arguments[];
};

static struct large_write *copy(const struct request *request)
{
    size_t spans = request->count * sizeof(struct span);
    struct large_write *large = malloc(sizeof *large + spans + request->raw.length);
    if (!large)
        return NULL;
    char *raw = (char *)(large->arguments + request->count);
    memcpy(raw, request->raw.at, request->raw.length);
    for (size_t i = 0; i < request->count; i++)
        large->arguments[i] = (struct span){raw + (request->arguments[i].at - request->raw.at),
                                            request->arguments[i].length};
    large->request = *request;
    large->request.raw.at = raw;
    large->request.arguments = large->arguments;
    return large;
}

static void change_meant(struct large_write *large, size_t meant)
{
    large->piecemeal.slot->serving->hints_meant += meant - large->meant;
    large->meant = meant;
}

/* There is room for what was found, or for less, or the write is refused. */
static bool settle_found(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct buffer *found = &large->found;
    large->next = 0;
    large->is_granted = write_is_granted(client_of(slot->replies), &large->named, found);
    if (!large->is_granted && large->worth == LACKED) {
        resp_write_error(reply_slot_output(slot), "%s", write_refusal);
        return false;
    }
    if (!large->is_granted) {
        large->worth = LACKED;
        buffer_clear(found);
    } else if (found_count(found) && !try_room(slot, found)) {
        resp_write_error(reply_slot_output(slot), "NESTGUARD out of memory");
        return false;
    } else if (!large->named.deleted) {
        change_meant(large, found_places(found));
    }
    return true;
}

static bool find_piece(struct large_write *large)
{
    const struct named *named = &large->named;
    struct serving *serving = large->piecemeal.slot->serving;
    struct range range = next_piece(large->next, named->count, named->step);
    write_find_some(serving, named, range.first, range.end, large->worth, &large->found);
    turn_worked(&serving->turn, range.end - range.first);
    large->next = range.end;
    return range.end < named->count || settle_found(large);
}

/* In a cluster the client may have been led elsewhere meanwhile. */
static void send_large(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct client *client = client_of(slot->replies);
    struct pool *pool = client_pool(client);
    if (pool_is_cluster(pool))
        client_go_to(client, pool_node_of(pool, large->named.keys[0]));
    request_to_cache(&large->request, client, slot, 0);
}

static bool note_piece(struct large_write *large)
{
    struct reply_slot *slot = large->piecemeal.slot;
    struct range range = next_piece(large->next, found_count(&large->found), 1);
    size_t count = range.end - range.first, before = overrides_places(&slot->serving->overrides);
    note(slot, found_spans(&large->found) + range.first, count);
    size_t taken = overrides_places(&slot->serving->overrides) - before;
    change_meant(large, large->meant - (taken < large->meant ? taken : large->meant));
    turn_worked(&slot->serving->turn, count);
    large->next = range.end;
    if (range.end < found_count(&large->found))
        return true;
    send_large(large);
    return false;
}

/* Of a client that has gone nothing is sent any more, and what was noted is as if refused. */
static bool go_on(struct piecemeal *piecemeal)
{
    struct large_write *large = container_of(piecemeal, struct large_write, piecemeal);
    struct reply_slot *slot = piecemeal->slot;
    if (slot->replies && (large->is_granted ? note_piece(large) : find_piece(large)))
        return true;
    if (!slot->replies)
        conclude(slot, false);
    change_meant(large, 0);
    reply_slot_let_go(slot, piecemeal->bytes);
    buffer_finish(&large->found);
    return false;
}

/* What is queued, or waits itself, is not; nor an inline command: its bytes were written over. */
static bool may_have_pieces(const struct client *client, const struct request *request)
{
    enum command_kind kind = request->command->kind;
    return request->count > WRITES_AT_ONCE && !request->is_inline &&
           (kind == COMMAND_WRITE || kind == COMMAND_DELETE) &&
           !(client->pinned.states & PINNED_MULTI) &&
           command_arity_ok(request->command, request->count);
}

bool write_must_wait(const struct client *client, const struct request *request)
{
    return client->replies.first && may_have_pieces(client, request);
}

/* False: it is done at once. */
static bool begin_pieces(struct client *client, const struct request *request,
                         const struct named *named)
{
    size_t bytes = request->raw.length + request->count * 2 * sizeof(struct span);
    bool few = named->count <= WRITES_AT_ONCE * named->step;
    if (few || client->replies.first || !may_have_pieces(client, request) ||
        !piecemeal_has_room(client->serving, bytes))
        return false;
    struct large_write *large = copy(request);
    if (!large)
        return false;
    large->piecemeal = (struct piecemeal){
        .slot = reply_slot_open(&client->replies, kind_of(client, request)), .go_on = go_on};
    large->named = *named;
    large->named.keys = large->arguments + (named->keys - request->arguments);
    large->found = (struct buffer){0};
    large->worth = ALSO_HELD;
    large->is_granted = false;
    large->next = large->meant = 0;
    client_settle(client);
    reply_slot_hold(large->piecemeal.slot, bytes);
    piecemeal_begin(&large->piecemeal, bytes);
    return true;
}

/* ---- and at once ---- */

/* Mostly there is nothing to tell, and the command is forwarded like any other. The keeper deletes
 * behind fills, over a connection of its own: what the client has sent behind a deletion waits for
 * that, or it might be deleted, too. */
int write_dispatch(struct client *client, const struct request *request)
{
    struct buffer found = {0};
    const struct named named = named_by(request);
    if (begin_pieces(client, request, &named))
        return 0;
    int status = write_find_noted(client, &named, &found);
    if (!status) {
        struct reply_slot *slot = reply_slot_open(&client->replies, kind_of(client, request));
        note_found(slot, &found);
        request_to_cache(request, client, slot, 0);
        reply_slot_answered(slot);
        if (named.deleted && found_count(&found) && !(client->pinned.states & PINNED_MULTI))
            client_settle(client);
    }
    buffer_finish(&found);
    return status;
}
